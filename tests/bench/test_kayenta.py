"""The judge that ours is held against is Kayenta's: cases that were worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.bench.verdict import kayenta
from tests.bench.verdict.kayenta import label, score, shift


def values(*numbers: float) -> kayenta.Array:
    return np.array(numbers, dtype=np.float64)


def test_the_shift_is_where_as_many_differences_lie_above_as_below() -> None:
    """The nine differences of (4, 5, 6) and (1, 2, 3) have the median 3; so few never exclude anything at 98 %."""
    found = shift(values(1, 2, 3), values(4, 5, 6))
    assert found.estimate == pytest.approx(3, abs=1e-3)
    assert (found.low, found.high) == (1, 5)  # the least and the largest difference


def test_the_interval_ends_where_the_statistic_passes_its_quantile() -> None:
    """Ten against ten, ten apart: sigma = sqrt(100/12 * 21) = 13.23.

    Below a shift of 6 there are 85 differences above it: (85 - 50 - 0.5) / 13.23 = 2.61; beyond 6 there are 79, and
    2.15. The quantile of 98 % is 2.33, so it is passed at 6; and on the other side, alike, at 14.
    """
    found = shift(np.arange(1.0, 11.0), np.arange(11.0, 21.0))
    assert found.estimate == pytest.approx(10, abs=1e-3)
    assert (found.low, found.high) == (pytest.approx(6, abs=1e-3), pytest.approx(14, abs=1e-3))


def test_ties_make_the_variance_smaller() -> None:
    """(1, 1, 2) and (1, 2, 2): ranks 2 and 5, sum 12, so 1.5 above the middle; variance 9/12 * (7 - 48/30) = 4.05."""
    z = kayenta._statistic(values(1, 2, 2), values(1, 1, 2), 0.0)
    assert z == pytest.approx((1.5 - 0.5) / math.sqrt(4.05))


def test_a_clear_shift_is_high_and_one_that_the_noise_hides_passes() -> None:
    assert label(np.arange(1.0, 11.0), np.arange(11.0, 21.0)) == "High"  # 6 is above a quarter of 10
    assert label(values(1, 2, 3, 4, 5), values(2, 3, 4, 5, 6)) == "Pass"
    assert label(np.arange(11.0, 21.0), np.arange(1.0, 11.0)) == "Pass"
    assert label(np.arange(11.0, 21.0), np.arange(1.0, 11.0), either=True) == "Low"


def test_higher_ranks_pass_where_the_mean_is_not_higher() -> None:
    control = values(*range(1, 11), 5000)
    assert label(control, values(*range(11, 22))) == "Pass"


def test_missing_values_are_left_out_and_none_at_all_is_no_data() -> None:
    assert label(values(1, 2, math.nan), values(math.nan)) == "Nodata"
    assert label(values(1, 2, math.nan), values(2, 1)) == "Pass"


def test_two_constants_are_compared_and_not_divided_by_their_variance() -> None:
    assert label(values(*[20.0] * 10), values(*[41.0] * 10)) == "High"
    assert label(values(*[20.0] * 10), values(*[20.0] * 7)) == "Pass"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["Pass", "Pass", "Pass", "High"], 75.0),
        (["Pass", "Pass", "High", "Nodata"], 66.67),
        (["Pass", "Pass", "Nodata", "Nodata"], 0.0),
        (["High", "Low"], 0.0),
    ],
)
def test_the_score_is_the_share_of_metrics_that_pass(labels: list[kayenta.Label], expected: float) -> None:
    assert score(labels) == expected
