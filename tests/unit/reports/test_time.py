"""Where the time went, in words: both sides with their units, what is not exposed named once, nothing made up."""

from __future__ import annotations

from typing import Any

from tests.unit.core.history.test_time_spent import phase
from tests.unit.reports.block_text import lines

from changectl.core.telemetry.engine_window import BEGAN_ANEW
from changectl.reports import _time


def told(*phases: dict[str, Any]) -> list[str]:
    return lines(_time.blocks(phases))


def test_stages_are_shown_as_times_and_shares_of_a_request_before_and_after() -> None:
    found = told(phase("A", 0.2), phase("B", 0.9, waiting=14))

    assert "a request, as the client saw it | 200ms | 900ms" in found
    assert "  generating the output (decode) | 100ms (50%) | 100ms (11%)" in found
    assert "requests waiting in the engine | 0, at most 0 | 7, at most 14" in found
    assert "busiest thread of the service | 50%, at most 90% (llama) | 50%, at most 90% (llama)" in found
    assert any("at most 0 requests waited in its queue before, 14 after" in line for line in found)


def test_what_neither_side_has_stands_in_one_line_and_never_as_a_zero() -> None:
    found = told(phase("A", 0.2), phase("B", 0.2))
    (line,) = [line for line in found if line.startswith("not exposed")]

    assert "in the engine's queue" in line
    assert not any("in the engine's queue |" in line for line in found)
    assert any(line.startswith("no /proc: CPU, all cores") for line in found)


def test_what_one_side_has_keeps_its_row_and_the_other_says_why_not() -> None:
    found = told(phase("A", 0.2), phase("B", 0.2, decode=None))

    assert "  generating the output (decode) | 100ms (50%) | not read" in found


def test_events_that_nobody_saw_stand_in_one_line_and_those_that_came_in_a_row() -> None:
    found = told(phase("A", 0.2, oom_kills=0, restarts=0), phase("B", 0.2, oom_kills=0, restarts=1))

    assert "none seen: processes ended for lack of memory" in found
    assert "restarts of the service | 0 | 1" in found


def test_an_engine_that_was_restarted_under_load_is_said_to_have_been() -> None:
    restarted = phase("B", 0.2, decode=None)
    restarted["activity"]["engine"]["missing"]["decode_time"] = BEGAN_ANEW

    assert "  generating the output (decode) | 100ms (50%) | restarted in between" in told(phase("A", 0.2), restarted)


def test_an_attempt_without_a_second_phase_shows_the_first_one_alone() -> None:
    assert "a request, as the client saw it | 200ms" in told(phase("A", 0.2))


def test_a_record_without_any_sample_has_no_such_part() -> None:
    assert told({"host": "h", "phase": "A", "summary": {}}) == []
