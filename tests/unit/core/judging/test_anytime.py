"""Always-valid tests: rarely wrong over a whole watch, however often one looks, and not blind either."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from changectl.core.judging.anytime import STAKES, ShareTest, climbing
from changectl.core.measuring.proportions import Count

ALPHA = 0.05
WATCHES = 140


def looked_at(test: ShareTest, share: float, looks: int, each: int, chance: random.Random) -> int | None:
    """The number of the look at which a stream of requests with such a share of failures is called harm."""
    for number in range(1, looks + 1):
        test = test.after(Count(sum(chance.random() < share for _ in range(each)), each))
        if test.beyond:
            return number
    return None


@pytest.mark.parametrize("share", [0.0, 0.005, 0.01])
def test_a_share_up_to_its_limit_is_called_harm_in_no_more_watches_than_alpha_says(share: float) -> None:
    chance = random.Random(1)
    alarms = sum(looked_at(ShareTest(0.01, ALPHA), share, 60, 5, chance) is not None for _ in range(WATCHES))
    assert alarms <= ALPHA * WATCHES


@pytest.mark.parametrize(("share", "looks"), [(0.04, 200), (0.10, 40), (0.5, 10)])
def test_a_larger_share_is_found_soon(share: float, looks: int) -> None:
    chance = random.Random(2)
    found = [looked_at(ShareTest(0.01, 0.0025), share, looks, 5, chance) for _ in range(100)]
    assert sum(look is not None for look in found) >= 90


@settings(max_examples=30, deadline=None)
@given(st.floats(0.001, 0.5), st.integers(1, 30), st.lists(st.integers(0, 5), max_size=8))
def test_what_a_look_is_worth_is_at_most_one_on_average_while_the_limit_holds(
    limit: float, n: int, before: list[int]
) -> None:
    test = ShareTest(limit, 0.01)
    for failed in before:
        test = test.after(Count(failed, 5))
    mean = sum(
        math.comb(n, failed) * limit**failed * (1 - limit) ** (n - failed) * test.after(Count(failed, n)).evidence
        for failed in range(n + 1)
    )
    assert mean <= test.evidence * (1 + 1e-9)


@given(st.integers(0, 500), st.integers(1, 500))
def test_no_single_look_decides(failed: int, good: int) -> None:
    assert not ShareTest(0.01, 0.01).after(Count(failed, failed + good)).beyond


def test_a_look_without_requests_changes_nothing() -> None:
    test = ShareTest(0.01, 0.01).after(Count(1, 20))
    assert test.after(Count(0, 0)) == test
    assert ShareTest(0.01, 0.01).evidence == 1.0
    assert len(test.stakes) == STAKES


@pytest.mark.parametrize(("limit", "alpha"), [(0.0, 0.1), (1.0, 0.1), (0.1, 0.0), (0.1, 1.0)])
def test_a_limit_that_is_no_share_cannot_be_tested(limit: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="cannot be tested"):
        ShareTest(limit, alpha)


def test_values_in_chance_order_seem_to_climb_no_more_often_than_alpha_says() -> None:
    chance = random.Random(3)
    alarms = 0
    for _ in range(1000):
        values = [chance.gauss(0, 1) for _ in range(40)]
        alarms += any(climbing(values[:length]) * ALPHA >= 1 for length in range(1, 41))
    assert alarms <= ALPHA * 1000


def test_values_that_climb_are_found_within_a_few_and_equal_ones_never() -> None:
    assert climbing([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) >= 400
    assert climbing([5.0] * 40) < 1
    assert climbing([]) == climbing([1.0]) == 1.0
