"""Levels with a rate from the plan to the verdict."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text
from tests.workflow.tempers import is_changed, while_measured
from tests.workflow.test_not_kept import assert_reverted
from tests.workflow.test_refused import assert_untouched

from changectl.core.cost import Span
from changectl.core.lifecycle import Outcome
from changectl.workflow.preview import preview

RATES = SERVICE.replace("{normal: 8 streams}", "{normal: 8 streams, peak: 6 rps}")
PROMISED = RATES + "slo: {ttft_user_p95 at peak: <= 100ms}\n"


def levels(stage: Stage, phase: int) -> dict[str, dict[str, object]]:
    return {level["name"]: level for level in stage.journal.bodies("measure.outcome")[phase]["summary"]["levels"]}


def drags(host: FakeHost) -> None:
    host.drag = 1.2


def test_a_change_is_judged_at_a_rate_and_kept_with_what_was_sent_and_under_way() -> None:
    stage = Stage(service_text=PROMISED)
    end = stage.apply(BETTER)

    assert end.last.outcome is Outcome.KEPT
    for phase in (0, 1):
        peak = levels(stage, phase)["peak"]
        assert (peak["n"], peak["planned_rate"], peak["streams"]) == (120, 6.0, None)
        assert peak["sent_rate"] == pytest.approx(6.0)
        assert peak["in_flight_most"] == 1
        assert peak["goodput"] == 1.0
        assert levels(stage, phase)["normal"]["goodput"] is None, "nothing is promised there"
        assert levels(stage, phase)["normal"]["in_flight_mean"] == 8.0


def test_a_service_that_is_slower_at_a_rate_goes_back() -> None:
    stage = Stage(service_text=PROMISED)
    stage.host.speed = lambda argv, streams: (200, 5) if is_changed(stage.host) and streams == 1 else (20, 5)

    assert_reverted(stage, stage.apply(BETTER), 4, "regressed")
    assert levels(stage, 1)["peak"]["goodput"] == 0.0


def test_a_rate_that_was_not_reached_after_the_change_takes_it_back_as_invalid() -> None:
    stage = Stage(service_text=RATES)
    while_measured(stage.host, "B", drags)
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 5, "invalid")
    assert "at peak: it sent 5." in end.last.text


def test_a_rate_that_was_not_reached_on_the_saved_configuration_ends_it_before_anything_is_written() -> None:
    stage = Stage(service_text=RATES)
    while_measured(stage.host, "A", drags)
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "baseline_invalid")
    assert "of 6 rps" in end.last.text
    assert "a lower rate" in end.last.text


@pytest.mark.parametrize(
    ("conditions", "seconds"),
    [
        ("{seconds: 30s}", 2 * (30.0 + 30.0)),
        ("{levels: {peak: 6 rps, more: 3 rps}, requests: 60}", 2 * (10.0 + 20.0)),
    ],
)
def test_a_preview_knows_how_long_open_levels_take(conditions: str, seconds: float) -> None:
    stage = Stage(service_text=RATES)
    (step,) = preview(stage.order(f"{plan_text(BETTER)}conditions: {conditions}\n"), stage.tools)

    assert step.measuring_seconds == Span(seconds, seconds)


def test_a_preview_cannot_know_how_long_a_closed_levels_requests_take() -> None:
    stage = Stage(service_text=RATES)
    (step,) = preview(stage.order(plan_text(BETTER) + "conditions: {requests: 60}\n"), stage.tools)

    assert step.measuring_seconds is None
