"""Shares of failed requests: what is certain about them, and what a burst is worth."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.measuring.proportions import Count, design_effect, fisher, lower, total, upper, upper_difference

ALPHA = 0.05


def test_no_failure_in_n_requests_excludes_about_three_in_n() -> None:
    assert upper(Count(0, 600), ALPHA) == pytest.approx(1 - ALPHA ** (1 / 600))
    assert upper(Count(0, 600), ALPHA) == pytest.approx(3 / 600, rel=0.01)
    assert upper(Count(0, 0), ALPHA) == 1.0
    assert upper(Count(5, 5), ALPHA) == 1.0


def test_the_bounds_are_those_that_make_what_was_seen_just_unlikely() -> None:
    def at_most(k: int, n: int, p: float) -> float:
        return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))

    assert at_most(3, 50, upper(Count(3, 50), ALPHA)) == pytest.approx(ALPHA)
    assert 1 - at_most(2, 50, lower(Count(3, 50), ALPHA)) == pytest.approx(ALPHA)
    assert lower(Count(0, 50), ALPHA) == 0.0


def test_fisher_counts_the_tables_that_are_at_least_as_bad() -> None:
    # 3 failures, all among the 10 of 20 requests after the change: 120 of 1140 ways to place them.
    assert fisher(Count(0, 10), Count(3, 10)) == pytest.approx(120 / 1140)
    assert fisher(Count(3, 10), Count(0, 10)) == pytest.approx(1.0)


def test_a_baseline_without_failures_passes_nothing() -> None:
    assert fisher(Count(0, 600), Count(12, 600)) < 0.001


def test_the_bound_of_a_difference_holds_what_both_bounds_allow() -> None:
    bound = upper_difference(Count(0, 1000), Count(0, 1000), ALPHA)

    assert bound == pytest.approx(upper(Count(0, 1000), ALPHA))
    assert upper_difference(Count(0, 1000), Count(20, 1000), ALPHA) > 0.02


def test_failures_that_all_fell_into_one_phase_are_worth_one_event() -> None:
    steady = [Count(5, 200)] * 4
    burst = [Count(20, 200), Count(0, 200), Count(0, 200), Count(0, 200)]
    none = [Count(0, 200)] * 4

    assert design_effect([none], [steady]) == 1.0
    assert design_effect([none], [none]) == 1.0
    # expected 5 in each: (15^2 + 3 * 5^2) / 5 / 0.975, over three degrees of freedom
    assert design_effect([none], [burst]) == pytest.approx(300 / 5 / 0.975 / 3)
    assert design_effect([[Count(20, 200)]]) == 1.0
    assert design_effect([]) == 1.0


def test_a_level_that_always_fails_more_than_another_is_no_burst_and_two_bursts_at_two_levels_are() -> None:
    none, often = [Count(0, 200)] * 2, [Count(20, 200)] * 2
    assert design_effect([none, often]) == 1.0
    early, late = [Count(20, 200), Count(0, 200)], [Count(0, 200), Count(20, 200)]
    # expected 10 in each: 2 * 10^2 / 10 / 0.95 for one degree of freedom, the same for each level
    assert design_effect([early, late]) == pytest.approx(200 / 10 / 0.95)
    assert design_effect([[Count(20, 400)] * 2]) == 1.0  # which the sum over both levels would hide


def test_all_together_is_the_sum() -> None:
    assert total([Count(1, 10), Count(2, 30)]) == Count(3, 40)
    assert total([]).share == 0.0


counts = st.integers(1, 500).flatmap(lambda n: st.builds(Count, st.integers(0, n), st.just(n)))


@given(counts, counts)
def test_a_bound_is_never_on_the_wrong_side_of_what_was_seen(a: Count, b: Count) -> None:
    assert lower(a, ALPHA) <= a.share <= upper(a, ALPHA) <= 1.0
    assert upper_difference(a, b, ALPHA) >= b.share - a.share


@given(counts)
def test_more_requests_with_the_same_share_narrow_the_bound(a: Count) -> None:
    assert upper(a.times(2), ALPHA) <= upper(a, ALPHA) + 1e-12
