"""What stood on the engine's page counts only where the load was on; what nobody looked at is missing, never zero."""

from __future__ import annotations

from typing import Any

from changectl.core.engine import Page
from changectl.core.telemetry.activity import NO_LOOK, NO_SAMPLES, Looks, activity
from changectl.core.telemetry.engine_page import NOT_EXPOSED
from changectl.core.telemetry.engine_series import MetricTable, Series

TABLE = MetricTable(series={"waiting": (Series("queued"),), "running": (Series("busy"),)})


def look(at: float, waiting: int) -> dict[str, Any]:
    return {"at": at, "clock": at, "page": {"status": 200, "body": f"queued {waiting}\nbusy 1\n"}}


def engine_of(*looks: dict[str, Any]) -> dict[str, Any]:
    page = Page(status=200, body="queued 0\nbusy 0\n")
    return dict(activity(TABLE, None, (page, page), Looks(looks=looks)).to_json()["engine"])


def test_a_gauge_is_of_the_looks_that_fell_into_the_load() -> None:
    gauges = engine_of(look(0, 0), look(1, 5), look(2, 3), look(3, 0))["gauges"]

    assert gauges["waiting"] == {"mean": 4, "most": 5, "least": 3, "of": ""}


def test_a_phase_shorter_than_the_gap_between_two_looks_has_no_queue_rather_than_an_empty_one() -> None:
    engine = engine_of(look(0, 0), look(1, 0))

    assert engine["gauges"] == {}
    assert (engine["missing"]["waiting"], engine["missing"]["running"]) == (NO_LOOK, NO_LOOK)
    assert engine["missing"]["kv_use"] == NOT_EXPOSED


def test_without_any_look_no_sample_was_taken() -> None:
    assert engine_of()["missing"]["waiting"] == NO_SAMPLES
