"""How many requests were under way at a time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.measuring.test_measurement import MS, record

from changectl.core.measuring.durations import Durations
from changectl.core.measuring.in_flight import InFlight, in_flight
from changectl.core.measuring.records import Record, Records


def spans(*times: tuple[int, int], streams: int = 1) -> Durations:
    """Requests taken up and ended at these milliseconds, turn and turn about in so many streams."""
    return timed(
        record(i, stream=i % streams, t_planned=start * MS, t_start=start * MS, t_end=end * MS)
        for i, (start, end) in enumerate(times)
    )


def timed(records: Iterable[Record]) -> Durations:
    return Durations(Records.of(records))


def test_requests_of_an_open_level_are_counted_over_the_time_of_its_sending() -> None:
    # From 0 to 30 ms: one all the time, another from 10 on, and the third is due when that is over.
    assert in_flight(spans((0, 100), (10, 50), (30, 40)), closed=False) == InFlight(pytest.approx(50 / 30), 3)


def test_ramp_and_end_of_a_closed_level_are_left_out() -> None:
    one, other = [(0, 100), (100, 200), (200, 300)], [(50, 150), (150, 250), (250, 350)]
    both = [span for pair in zip(one, other, strict=True) for span in pair]

    assert in_flight(spans(*both, streams=2), closed=True) == InFlight(2.0, 2)


def test_a_stream_that_pauses_between_its_requests_is_not_under_way_then() -> None:
    assert in_flight(spans((0, 60), (100, 160), (200, 260)), closed=True).mean == pytest.approx(180 / 260)


def test_a_request_that_ends_when_another_begins_makes_room_for_it() -> None:
    assert in_flight(spans((0, 10), (10, 20)), closed=True).most == 1


def test_streams_that_never_ran_together_have_no_mean() -> None:
    assert in_flight(spans((0, 10), (50, 60), streams=2), closed=True) == InFlight(None, 1)


@pytest.mark.parametrize("missing", ["t_start", "t_end"])
def test_a_request_without_its_times_leaves_it_unknown(missing: str) -> None:
    records = [record(0), record(1, **{missing: None})]

    assert in_flight(timed(records), closed=False) == InFlight(None, None)
    assert in_flight(timed([]), closed=True) == InFlight(None, None)


times = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 500)), min_size=1, max_size=40)


@given(times, st.booleans(), st.integers(1, 4))
def test_the_mean_is_never_more_than_the_most(rows: list[tuple[int, int]], closed: bool, streams: int) -> None:
    found = in_flight(spans(*((start, start + lasts) for start, lasts in rows), streams=streams), closed=closed)

    assert found.most is not None
    assert 0 <= found.most <= len(rows)
    assert found.mean is None or 0 <= found.mean <= found.most + 1e-9
