"""What was measured, in words: what was asked for, what was really sent, what of it was within the limits."""

from __future__ import annotations

from typing import Any

from changectl.reports import _measured
from changectl.reports._blocks import Table
from changectl.reports._exactness import exactness

CLOSED = {"name": "normal", "n": 60, "ok": 60, "streams": 8, "in_flight_mean": 7.96, "in_flight_most": 8,
          "goodput": 0.9833, "sent_rate": None}  # fmt: skip
OPEN = {"name": "peak", "n": 120, "ok": 118, "planned_rate": 6.0, "sent_rate": 5.9876, "in_flight_mean": 3.14,
        "in_flight_most": 9, "goodput": 0.5}  # fmt: skip
OLD = {"name": "normal", "n": 60, "ok": 60}


def rows(*levels: dict[str, Any]) -> list[dict[str, str]]:
    conditions = {"levels": {"normal": "8 streams", "peak": "6 rps"}, "engine": "vllm"}
    summary = {"levels": list(levels)}
    body = {"phase": "A", "host": "gpu1", "fresh_start": True, "conditions": conditions, "summary": summary}
    table = next(block for block in _measured.blocks([body], "w.jsonl", "m") if isinstance(block, Table))
    return [dict(zip(table.headings, row, strict=True)) for row in table.rows]


def test_an_open_level_shows_the_rate_that_was_asked_for_and_sent_and_how_much_was_under_way() -> None:
    (row,) = rows(OPEN)

    assert row["load"] == "6 rps, open: 5.988 rps sent"
    assert row["under way"] == "3.14, at most 9"
    assert row["goodput"] == "50%"


def test_a_closed_level_shows_how_many_were_really_under_way() -> None:
    (row,) = rows(CLOSED)

    assert (row["load"], row["under way"], row["goodput"]) == ("8 streams", "7.96, at most 8", "98.3%")


def test_a_level_that_was_precise_before_its_time_says_when() -> None:
    ended, used = rows({**CLOSED, "may_end": True, "ended": 7.25}, {**CLOSED, "may_end": True, "ended": None})

    assert (ended["load"], used["load"]) == ("8 streams, precise after 7.25s", "8 streams")


def test_requests_that_failed_are_told_by_what_became_of_them() -> None:
    failing = {**CLOSED, "ok": 47, "failures": {"timeout": 1, "http_4xx": 12, "cut_off": 0}}

    assert [row["failed"] for row in rows(failing, OPEN)] == ["12 http_4xx, 1 timeout", ""]
    assert "failed" not in rows(CLOSED)[0]


def test_what_was_not_recorded_is_not_made_up() -> None:
    without_mean = {**CLOSED, "in_flight_mean": None, "goodput": None}

    assert list(rows(OLD)[0])[-1] == "fresh start"
    assert [row["under way"] for row in rows(OLD, without_mean)] == ["", "at most 8"]
    assert "goodput" not in rows(OLD, without_mean)[0]


def of_test(*tries: dict[str, float], problem: str = "") -> dict[str, Any]:
    return {"summary": {"self_test": {"tries": list(tries), "problem": problem}}}


def test_how_exactly_the_generator_told_time_is_one_line_with_the_worst_of_all_phases() -> None:
    busy, exact = {"ttft_p99": 0.02, "tpot_p99": 0.003}, {"ttft_p99": 0.0004, "tpot_p99": 0.00002}
    worse = {"ttft_p99": 0.0009, "tpot_p99": 0.00001}
    ((_, text),) = exactness([of_test(busy, exact), of_test(worse), {"summary": {}}])
    assert text == ("900us (first token), 20us (time per token), found before each phase at a server of known pace")


def test_a_phase_whose_generator_was_not_tested_is_no_exact_one_and_older_records_say_nothing() -> None:
    exact = {"ttft_p99": 0.0004, "tpot_p99": 0.00002}
    assert exactness([of_test(exact), of_test(problem="no loopback")]) == [("stamps within", "not known: no loopback")]
    assert exactness([{"summary": {}}]) == []
