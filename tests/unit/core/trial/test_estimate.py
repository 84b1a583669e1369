"""Least squares over the phases of a trial, its bounds, and what is left out of it."""

from __future__ import annotations

import math

import numpy
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from changectl.core.measuring.metrics import METRICS
from changectl.core.trial.estimate import (
    Estimate,
    Point,
    estimate,
    figure_of,
    fit,
    quantile,
    relative_change,
    variance_factor,
    worse_by,
    worse_log,
)
from changectl.core.trial.noise_model import PRIOR, Spread
from changectl.core.trial.order import order

TTFT, RATE = METRICS["ttft_user"], METRICS["rps_ok"]


def points(*values: float) -> list[Point]:
    letters = order((len(values) + 1) // 2)
    return [Point(number, letter, y) for number, (letter, y) in enumerate(zip(letters, values, strict=False), start=1)]


def parts(spread: Spread) -> tuple[float, float]:
    return spread.variance, spread.df


def test_the_example_that_was_computed_by_hand() -> None:
    # A B B A with y = 1, 4, 5, 2. theta = (4 + 5)/2 - (1 + 2)/2 = 3, since the letters say nothing about the time.
    # drift = sum((t - 2.5) * y) / sum((t - 2.5)^2) = (-1.5 - 2 + 2.5 + 3) / 5 = 0.4
    # residuals: 1 - 1.5 + 0.6, 4 - 4.5 + 0.2, 5 - 4.5 - 0.2, 2 - 1.5 - 0.6 = 0.1, -0.3, 0.3, -0.1: squares 0.2
    found = fit(points(1, 4, 5, 2))

    assert found is not None
    assert found.theta == pytest.approx(3)
    assert found.drift == pytest.approx(0.4)
    assert parts(found.residual) == (pytest.approx(0.2), 1)  # 4 phases, 3 coefficients
    assert found.factor == pytest.approx(1)
    assert (found.mean_a, found.mean_b, found.n_b) == (1.5, 4.5, 2)


def test_the_bounds_pool_the_residuals_with_what_was_known() -> None:
    fitted = fit(points(1, 4, 5, 2))
    assert fitted is not None
    found = estimate(fitted, Spread(0.1, 3))

    # (1 * 0.2 + 3 * 0.1) / 4 = 0.125 with 4 degrees of freedom; t(0.95, 4) = 2.1318, by the table
    assert parts(found.spread) == (pytest.approx(0.125), 4)
    assert found.upper(0.05) == pytest.approx(3 + 2.1318 * math.sqrt(0.125), abs=1e-4)
    assert found.lower(0.05) == pytest.approx(3 - 2.1318 * math.sqrt(0.125), abs=1e-4)
    assert found.upper_of_b(0.05) == pytest.approx(4.5 + 2.1318 * math.sqrt(0.125 / 2), abs=1e-4)


@pytest.mark.parametrize("number", range(3, 17))
def test_it_is_what_a_library_finds(number: int) -> None:
    values = numpy.random.default_rng(number).normal(size=number)
    own = points(*map(float, values))
    matrix = numpy.array([[1.0, point.number, point.letter == "B"] for point in own])
    coefficients, residual, *_ = numpy.linalg.lstsq(matrix, values, rcond=None)
    found = fit(own)

    assert found is not None
    assert found.theta == pytest.approx(coefficients[2])
    assert found.drift == pytest.approx(coefficients[1])
    assert found.factor == pytest.approx(numpy.linalg.inv(matrix.T @ matrix)[2, 2])
    if number > 3:
        assert parts(found.residual) == (pytest.approx(residual[0] / (number - 3)), number - 3)


def test_one_pair_knows_no_drift_and_lives_on_what_was_known() -> None:
    fitted = fit(points(1.0, 1.2))
    assert fitted is not None
    found = estimate(fitted, PRIOR)

    assert fitted.drift is None
    assert found.theta == pytest.approx(0.2)
    assert parts(found.spread) == (pytest.approx(PRIOR.variance), 3)
    assert found.standard_error == pytest.approx(math.sqrt(2) * 0.01)


def test_nothing_known_and_nothing_left_over_has_no_bounds() -> None:
    fitted = fit(points(1.0, 1.2))
    assert fitted is not None
    found = estimate(fitted, Spread(0.0, 0.0))

    assert (found.lower(0.05), found.upper(0.05)) == (-math.inf, math.inf)
    assert found.p_worse() == found.p_better() == 1.0


def test_figures_that_never_differ_have_bounds_without_width() -> None:
    fitted = fit(points(1, 2, 2, 1, 1, 2))
    assert fitted is not None
    found = estimate(fitted, Spread(0.0, 0.0))

    assert found.upper(0.05) == pytest.approx(1)
    assert found.p_worse() == pytest.approx(0, abs=1e-12)
    same = Estimate(0.0, 1.0, Spread(0.0, 5), Spread(0.0, 5), 0.0, 2)
    assert same.p_worse() == same.p_better() == 1.0


def test_a_lost_phase_is_left_out() -> None:
    whole = points(0, 1.1, 1.2, 0.3, 0.4, 1.5)
    for lost in range(len(whole)):
        found = fit([point for point in whole if point is not whole[lost]])
        assert found is not None
        assert found.theta == pytest.approx(1)
        assert found.drift == pytest.approx(0.1)
        assert found.residual.df == 2


def test_one_configuration_alone_has_no_effect() -> None:
    assert fit([]) is None
    assert fit([Point(1, "A", 1.0), Point(4, "A", 2.0)]) is None


def test_two_phases_with_one_number_are_refused() -> None:
    with pytest.raises(ValueError, match="same number"):
        fit([Point(1, "A", 1.0), Point(1, "B", 2.0)])


def test_more_pairs_narrow_the_same_effect() -> None:
    fitted = fit(points(0, 0.1, 0.1, 0))
    assert fitted is not None
    now = estimate(fitted, PRIOR)
    then = now.after(4)

    assert then.spread == Spread(now.spread.variance, 3 + 5)
    assert then.factor == variance_factor(4) == pytest.approx(0.5)
    assert now.theta < then.upper(0.05) < now.upper(0.05)


def test_without_end_of_degrees_of_freedom_it_is_the_normal_distribution() -> None:
    assert quantile(0.975, 1e9) == pytest.approx(1.959964, abs=1e-6)
    assert quantile(0.975, 1e5) == pytest.approx(1.959964, abs=1e-4)


def test_more_is_worse_whatever_the_metric_counts() -> None:
    assert worse_log(TTFT, 0.2) > worse_log(TTFT, 0.1)
    assert worse_log(RATE, 5.0) > worse_log(RATE, 10.0)
    assert worse_log(TTFT, math.inf) == worse_log(RATE, 0.0) == math.inf
    assert math.isfinite(worse_log(TTFT, 0.0))
    assert figure_of(RATE, math.inf) == 0.0
    assert figure_of(TTFT, math.inf) == math.inf


def test_an_effect_in_the_metrics_own_terms() -> None:
    assert relative_change(TTFT, math.log(1.1)) == pytest.approx(0.1)
    assert relative_change(RATE, math.log(1.1)) == pytest.approx(1 / 1.1 - 1)
    assert worse_by(TTFT, 0.2, math.log(1.1)) == pytest.approx(0.02)
    assert worse_by(RATE, 11.0, math.log(1.1)) == pytest.approx(1.0)
    assert relative_change(TTFT, 1e4) == math.inf


series = st.lists(st.floats(-10, 10), min_size=4, max_size=16)


@given(series, st.floats(-1, 1))
def test_a_drift_that_is_linear_in_the_phase_changes_nothing(values: list[float], slope: float) -> None:
    plain = fit(points(*values))
    drifted = fit(points(*(y + slope * number for number, y in enumerate(values, start=1))))
    assert plain is not None
    assert drifted is not None
    assert drifted.theta == pytest.approx(plain.theta, abs=1e-9)
    assert drifted.residual.variance == pytest.approx(plain.residual.variance, abs=1e-9)


@given(series)
def test_swapping_the_letters_turns_the_sign(values: list[float]) -> None:
    own = points(*values)
    swapped = [Point(point.number, "A" if point.letter == "B" else "B", point.y) for point in own]
    one, other = fit(own), fit(swapped)
    assert one is not None
    assert other is not None
    assert other.theta == pytest.approx(-one.theta, abs=1e-9)
    assert other.factor == pytest.approx(one.factor)


@given(st.lists(st.floats(0.01, 100), min_size=4, max_size=16), st.floats(0.01, 100))
def test_another_unit_changes_nothing(values: list[float], scale: float) -> None:
    assume(all(value * scale > 1e-3 for value in values))
    one = fit(points(*(worse_log(TTFT, value) for value in values)))
    other = fit(points(*(worse_log(TTFT, value * scale) for value in values)))
    assert one is not None
    assert other is not None
    assert other.theta == pytest.approx(one.theta, abs=1e-9)


@given(st.floats(1e-4, 1e4), st.sampled_from([TTFT, RATE]))
def test_the_logarithm_loses_nothing(value: float, metric: object) -> None:
    assert figure_of(metric, worse_log(metric, value)) == pytest.approx(value)  # type: ignore[arg-type]


@given(series, st.floats(1e-6, 1), st.floats(1, 50))
def test_evidence_and_bound_say_the_same(values: list[float], variance: float, df: float) -> None:
    fitted = fit(points(*values))
    assert fitted is not None
    found = estimate(fitted, Spread(variance, df))
    for alpha in (0.2, 0.05, 0.001):
        assert (found.lower(alpha) > 1e-9) <= (found.p_worse() < alpha)
        assert (found.upper(alpha) < -1e-9) <= (found.p_better() < alpha)
