"""The curve of a level: what share of its requests had a duration by when."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from changectl.core.measuring.distribution import MOST_POINTS, distributions
from changectl.core.measuring.records import NOT_SENT, OK, Record

MS = 10**6


def answered(firsts: Sequence[int], failed: int = 0, level: str = "normal") -> list[Record]:
    good = [Record(i, level, 0, "p", 0, 0, OK, t_first=first * MS) for i, first in enumerate(firsts)]
    return good + [Record(len(good) + i, level, 0, "p", 0, 0, "http_5xx") for i in range(failed)]


def test_a_failure_never_had_it_so_that_its_curve_ends_below_the_top() -> None:
    (found,) = distributions(answered([10, 20, 30], failed=1), answered([5]), ("normal",))

    assert (found.metric, found.before is not None, found.after is not None) == ("ttft_user", True, True)
    assert found.before is not None
    assert found.before.points == ((0.01, 0.25), (0.02, 0.5), (0.03, 0.75))
    assert (found.before.n, found.before.failed) == (4, 1)
    assert (found.before.at(0.5), found.before.at(0.95)) == (0.02, None)


def test_levels_that_were_not_asked_for_and_turns_that_were_not_sent_are_left_out() -> None:
    unsent = Record(9, "normal", 0, "p", 0, 0, NOT_SENT)
    (found,) = distributions([*answered([10]), unsent, *answered([1], level="warmup")], [], ("normal",))

    assert (found.level, found.after) == ("normal", None)
    assert found.before is not None
    assert (found.before.n, found.before.failed) == (1, 0)
    assert distributions(answered([], failed=3), [], ("normal",)) == []


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=1000))
def test_a_curve_rises_from_the_fastest_to_the_slowest_and_stays_small(firsts: list[int]) -> None:
    (found,) = distributions(answered(firsts), [], ("normal",))
    assert found.before is not None
    points = found.before.points

    assert list(points) == sorted(points)
    assert len(points) <= MOST_POINTS
    assert points[0][0] == min(firsts) / 1000
    assert points[-1] == (max(firsts) / 1000, 1.0)
