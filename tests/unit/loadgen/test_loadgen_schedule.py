"""When the requests of an open level are due: as many as asked, within the time, as strangers come, always the same."""

from __future__ import annotations

import itertools
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.adapters.loadgen.schedule import arrivals, most_within

seeds = st.integers(0, 2**63 - 1)
PINNED = [2433905619, 7070794836, 7287010569, 9317766952, 9831353874]
names = st.text(min_size=1, max_size=20)
counts = st.integers(1, 400)
lengths = st.floats(0.1, 3600)


@given(seeds, names, counts, lengths)
def test_a_schedule_is_sorted_within_its_time_and_as_long_as_asked(
    seed: int, name: str, requests: int, seconds: float
) -> None:
    schedule = arrivals(seed, name, requests, seconds)

    assert schedule == sorted(schedule)
    assert len(schedule) == requests
    assert schedule[0] >= 0
    assert schedule[-1] < seconds * 1e9
    assert all(type(moment) is int for moment in schedule)


@given(seeds, names, counts, lengths)
def test_the_same_seed_and_level_give_the_same_schedule(seed: int, name: str, requests: int, seconds: float) -> None:
    assert arrivals(seed, name, requests, seconds) == arrivals(seed, name, requests, seconds)


@given(seeds, st.integers(5, 200))
def test_another_seed_or_level_gives_another_schedule(seed: int, requests: int) -> None:
    first = arrivals(seed, "low", requests, 20.0)

    assert arrivals(seed, "peak", requests, 20.0) != first
    assert arrivals(seed + 1, "low", requests, 20.0) != first


@given(seeds, st.floats(0.5, 50))
def test_a_longer_period_is_the_same_pattern_stretched(seed: int, factor: float) -> None:
    short, long = arrivals(seed, "low", 60, 10.0), arrivals(seed, "low", 60, 10.0 * factor)

    for a, b in zip(short, long, strict=True):
        assert b == pytest.approx(a * factor, abs=factor + 1)


@given(seeds)
def test_the_mean_rate_holds_in_both_halves(seed: int) -> None:
    # Of 2000 requests, each in either half by chance: five standard deviations of that are 112.
    schedule = arrivals(seed, "low", 2000, 100.0)

    assert sum(moment < 50e9 for moment in schedule) == pytest.approx(1000, abs=112)


@given(seeds)
def test_gaps_are_as_uneven_as_those_between_strangers(seed: int) -> None:
    """An exponential's standard deviation is its mean; evenly spaced requests would have none."""
    schedule = arrivals(seed, "low", 2000, 100.0)
    gaps = [later - earlier for earlier, later in itertools.pairwise(schedule)]

    assert statistics.stdev(gaps) / statistics.mean(gaps) == pytest.approx(1, abs=0.2)


def test_the_schedule_of_a_seed_never_changes() -> None:
    """Two phases are compared on one schedule, whatever Python their hosts have, and records are read years later."""
    assert arrivals(7, "peak", 5, 10.0) == PINNED


@given(st.lists(st.integers(0, 10**10), min_size=1, max_size=60), st.floats(0.001, 12))
def test_the_most_requests_within_a_time_are_counted_right(moments: list[int], seconds: float) -> None:
    schedule = sorted(moments)
    span = int(seconds * 1e9)
    by_hand = max(sum(first <= moment <= first + span for moment in schedule) for first in schedule)

    assert most_within(schedule, seconds) == by_hand
