"""Where the time went: both sides by one measure, nothing averaged over a gap, a sentence only where it is earned."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from changectl.core.history.time_said import Side
from changectl.core.history.time_spent import TimeSpent, time_spent


def phase(
    letter: str,
    whole: float,
    *,
    decode: float | None = 0.1,
    prefill: float | None = 0.05,
    host: str = "h1",
    waiting: float | None = 0,
    queue: tuple[float, int] | None = None,
    **counts: float,
) -> dict[str, Any]:
    """A phase of 10 requests, each so many seconds long; the engine counts none of its times but the queue's."""
    gains: dict[str, Any] = {}
    for name, seconds in (("decode_time", decode), ("prefill_time", prefill)):
        gains |= {} if seconds is None else {name: {"value": 10 * seconds}}
    gains |= {} if queue is None else {"queue_time": {"value": queue[0], "count": queue[1]}}
    gauges = {} if waiting is None else {"waiting": {"mean": waiting / 2, "most": waiting, "least": 0, "of": ""}}
    engine = {"gains": gains, "gauges": gauges, "missing": {"queue_time": "not exposed", "waiting": "not exposed"}}
    spreads = {"busiest_thread": {"mean": 0.5, "most": 0.9, "least": 0.1, "of": "llama"}}
    activity = {"engine": engine, "client": {"requests": 10, "seconds": 10 * whole},
                "host": {"spreads": spreads, "counts": counts, "missing": {"cpu": "no /proc"}}}  # fmt: skip
    return {"host": host, "phase": letter, "activity": activity}


def spent(*bodies: dict[str, Any]) -> TimeSpent:
    (found,) = time_spent(bodies)
    return found


def before(found: TimeSpent, name: str) -> Side:
    side = found.row(name).before
    assert side is not None
    return side


def test_seconds_for_each_request_come_from_the_engines_count_or_else_from_the_clients() -> None:
    found = spent(phase("A", 1.0, queue=(8.0, 16)))

    assert before(found, "queue_time").mean == 0.5
    assert before(found, "decode_time").mean == pytest.approx(0.1)
    assert before(found, "rest_time").mean == pytest.approx(0.35)
    assert found.row("decode_time").after is None


def test_what_the_engine_does_not_expose_is_missing_and_not_zero() -> None:
    side = before(spent(phase("A", 1.0)), "queue_time")

    assert (side.mean, side.missing) == (None, "not exposed")


def test_one_phase_that_lacks_a_figure_takes_it_from_its_whole_side() -> None:
    side = before(spent(phase("A", 1.0), phase("A", 1.0, decode=None)), "decode_time")

    assert (side.mean, side.missing) == (None, "not read")


def test_of_several_phases_means_are_averaged_peaks_are_the_highest_and_counts_add_up() -> None:
    found = spent(phase("A", 1.0, waiting=2, restarts=1), phase("A", 3.0, waiting=6, restarts=2))
    whole, waiting, restarts = (before(found, name) for name in ("request_time", "waiting", "restarts"))

    assert (whole.mean, waiting.most, restarts.mean) == (2.0, 6, 3)


@pytest.mark.parametrize("failed", [{"ok": False}, {"summary": {"invalid": ["load generator: ended with status 1"]}}])
def test_a_phase_that_failed_counts_only_where_there_is_no_other(failed: dict[str, Any]) -> None:
    broken = {**phase("A", 9.0), **failed}

    assert before(spent(phase("A", 1.0), broken), "request_time").mean == 1.0
    assert before(spent(broken), "request_time").mean == 9.0


def test_stages_longer_than_the_whole_leave_no_negative_rest() -> None:
    side = before(spent(phase("A", 0.1, decode=0.3)), "rest_time")

    assert side.mean is None
    assert "longer than the whole" in side.missing


def test_the_stage_that_the_change_lies_in_is_named_with_the_queue() -> None:
    found = spent(phase("A", 0.2, waiting=0), phase("B", 0.9, waiting=14))

    assert found.said == (
        "All of the change in a request's time lies outside of the stages that the engine exposes: 50ms before, 750ms "
        "after; at most 0 requests waited in its queue before, 14 after"
    )


def test_a_stage_is_named_by_what_it_does() -> None:
    found = spent(phase("A", 0.4, waiting=None), phase("B", 0.6, decode=0.25, waiting=None))

    assert found.said.startswith("Most of the change in a request's time lies in generating the output: 100ms before")
    assert "waited" not in found.said


@pytest.mark.parametrize(
    "phases",
    [
        [phase("A", 1.0), phase("B", 1.05)],  # too little
        [phase("A", 1.0)],  # nothing to compare with
        [phase("A", 1.0), phase("B", 2.0, decode=None, prefill=None)],  # the stages are not known
        [phase("A", 1.0), phase("B", 3.0), phase("B", 0.9), phase("A", 1.1)],  # the phases do not agree
        [phase("A", 1.0, decode=0.8), phase("B", 0.8, decode=0.9, prefill=0.05, waiting=0, queue=(9, 0))],
        [],
    ],
)
def test_there_is_no_sentence_where_the_evidence_does_not_carry_it(phases: list[dict[str, Any]]) -> None:
    assert not any(found.said for found in time_spent(phases))


def test_every_instance_has_its_own_and_records_of_older_programs_have_none() -> None:
    found = time_spent([phase("A", 1.0), phase("A", 1.0, host="h2"), {"host": "h3", "phase": "A", "summary": {}}])

    assert [one.host for one in found] == ["h1", "h2"]


@settings(deadline=None)
@given(some.recursive(some.none() | some.booleans() | some.floats() | some.text(max_size=3),
                      lambda inner: some.lists(inner, max_size=2) | some.dictionaries(some.sampled_from(
                          ["engine", "host", "client", "gains", "gauges", "spreads", "counts", "missing", "mean",
                           "value", "count", "requests", "seconds", "decode_time", "waiting"]), inner, max_size=4),
                      max_leaves=12))  # fmt: skip
def test_any_record_of_another_program_is_read_without_an_error(activity: Any) -> None:
    time_spent([{"host": "h", "phase": "A", "activity": activity}, phase("B", 1.0, host="h")])
