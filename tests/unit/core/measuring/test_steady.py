"""The throughput of a level that may be shorter in one phase than in another."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.measuring.test_measurement import MS, record

from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.measurement import Record, summarise
from changectl.core.units import LevelLoad

SECONDS = 10.0


def level(records: list[Record], *, ended: float | None = None, may_end: bool = True) -> LevelMeasurement:
    size = LevelSize(LevelLoad(streams=2), SECONDS, may_end=may_end)
    return summarise(records, {"low": size}, ended={} if ended is None else {"low": ended}).levels[0]


def streams(lasts: float, each: int, **fields: Any) -> list[Record]:
    """Two streams, the second half a request later, whose requests begin until so many seconds have passed."""
    starts = sorted((begin * MS, stream) for stream in range(2) for begin in range(stream * each // 2, 10**6, each))
    mine = [(begin, stream) for begin, stream in starts if begin < lasts * 1e9]
    return [
        record(i, stream=stream, t_planned=begin, t_start=begin, t_end=begin + each * MS, **fields)
        for i, (begin, stream) in enumerate(mine)
    ]


@pytest.mark.parametrize("seconds", [3.0, 4.1, 7.77, 10.0])
def test_it_is_the_same_however_long_the_level_lasted(seconds: float) -> None:
    measured = level(streams(seconds, 800), ended=seconds)
    assert measured.rps_ok == pytest.approx(2 / 0.8)
    assert measured.out_tok_s == pytest.approx(10 * 2 / 0.8)


def test_one_that_used_its_time_is_measured_in_the_same_way_and_any_other_by_its_window() -> None:
    records = streams(SECONDS, 800)
    assert level(records).rps_ok == pytest.approx(2 / 0.8)
    assert level(records, may_end=False).rps_ok == pytest.approx(len(records) / 10.4)


def test_requests_that_hang_count_as_long_as_they_hang() -> None:
    records = streams(5.0, 500)
    last = [one._replace(t_end=one.t_planned + 60_000 * MS) if one.i >= len(records) - 2 else one for one in records]
    measured = level(last)
    assert measured.rps_ok is not None
    assert measured.rps_ok < 0.6 * 2 / 0.5, "nothing was answered in the second half"


def test_what_failed_was_no_answer() -> None:
    records = [one if one.i % 4 else one._replace(cls="http_5xx") for one in streams(SECONDS, 500)]
    assert level(records).rps_ok == pytest.approx(0.75 * 2 / 0.5, rel=0.05)


def test_without_a_count_for_every_answer_there_are_no_tokens_per_second() -> None:
    records = [one if one.i else one._replace(n_out=None) for one in streams(SECONDS, 500)]
    assert level(records).out_tok_s is None
    assert level(records).rps_ok is not None


def test_a_level_that_ended_before_its_streams_had_begun_is_measured_by_its_window() -> None:
    records = streams(SECONDS, 500)
    assert level(records, ended=0.1).rps_ok == level(records, may_end=False).rps_ok
