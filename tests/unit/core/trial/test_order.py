"""The order of phases, the looks, and how many pairs fit into a time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.trial.order import LOOKS, MOST_PAIRS, PAIRS, Times, length, looks, order, pairs_within


def test_every_other_pair_is_turned_round() -> None:
    assert "".join(order(1)) == "AB"
    assert "".join(order(4)) == "ABBAABBA"
    assert order(3)[:4] == order(2)


@pytest.mark.parametrize("pairs", [2, 4, 6, 8])
def test_in_whole_fours_both_letters_have_the_same_place_in_time(pairs: int) -> None:
    numbers = {letter: [n for n, own in enumerate(order(pairs)) if own == letter] for letter in "AB"}
    assert abs(sum(numbers["A"]) - sum(numbers["B"])) == 0


def test_the_looks_of_the_named_efforts() -> None:
    assert looks(PAIRS["standard"]) == (1, 2, 3, 4)
    assert looks(PAIRS["thorough"]) == (1, 2, 3, 4, 6, 8)


@pytest.mark.parametrize("pairs", range(1, MOST_PAIRS + 1))
def test_every_effort_can_be_extended_to_the_end_and_never_has_more_than_six_looks(pairs: int) -> None:
    taken = looks(pairs)
    more = looks(MOST_PAIRS, taken)

    assert taken[-1] == pairs
    assert len(taken) + len(more) <= LOOKS
    assert sorted({*taken, *more}) == [*taken, *more]
    assert (*taken, *more)[-1] == MOST_PAIRS


def test_extending_standard_to_thorough_brings_the_looks_that_thorough_has() -> None:
    assert looks(8, (1, 2, 3, 4)) == (6, 8)
    assert looks(4, (1, 2, 3, 4)) == ()


@pytest.mark.parametrize("pairs", [0, MOST_PAIRS + 1])
def test_other_numbers_of_pairs_are_refused(pairs: int) -> None:
    with pytest.raises(ValueError, match="1 to 8 pairs"):
        looks(pairs)


def test_the_length_counts_the_last_change_back_too() -> None:
    found = length(2, Times(load=100, phase=200, swap=10))

    # A B B A: 4 phases; the verdict may want B: a fifth start. Put in place: B, A, and B once more.
    assert (found.phases, found.starts) == (4, 5)
    assert found.down == 5 * 100 + 3 * 10
    assert found.seconds == found.down + 4 * 200


def test_a_time_holds_as_many_pairs_as_fit() -> None:
    times = Times(load=120, phase=300)
    assert pairs_within(length(3, times).seconds, times) == 3
    assert pairs_within(length(3, times).seconds - 1, times) == 2
    assert pairs_within(60, times) == 0
    assert pairs_within(1e9, times) == MOST_PAIRS


@given(st.floats(0.1, 1e4), st.floats(0.1, 1e4), st.floats(0, 1e3), st.floats(0, 1e6))
def test_what_fits_never_takes_longer_than_the_time(load: float, phase: float, swap: float, seconds: float) -> None:
    times = Times(load, phase, swap)
    found = pairs_within(seconds, times)
    assert found == 0 or length(found, times).seconds <= seconds
    assert found == MOST_PAIRS or length(found + 1, times).seconds > seconds
