"""The effect of a change on one figure: least squares over all phases so far.

y = a + b * phase number + theta * [B], y being the logarithm of the phase's figure with the sign that makes more worse.
In the order A B B A the letters say nothing about the time, so a linear drift of the host costs one degree of freedom
and neither bias nor precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from changectl.core.measuring.metrics import Metric
from changectl.core.trial.noise_model import Spread, pooled
from changectl.core.trial.order import Letter, order
from changectl.core.units import SECONDS, SHORTEST

_LARGEST = 700.0  # beyond it an exponential is no number any more
_MANY = 1e6  # degrees of freedom with which Student's distribution is the normal one


@dataclass(frozen=True, slots=True)
class Point:
    """One phase's figure: `y` is its logarithm, more is worse."""

    number: int
    letter: Letter
    y: float


@dataclass(frozen=True, slots=True)
class Fit:
    """The line through the phases.

    Attributes:
        theta: by how much B is worse than A.
        factor: the variance of theta, in variances of one phase.
        drift: from one phase to the next; None: two phases alone cannot tell it from theta.
        residual: what the line leaves unexplained: a variance with (phases - 3) degrees of freedom, 0 with 0 for few.
        mean_a: of the phases of A.
        mean_b: of the phases of B.
        n_b: how many phases of B there are.
    """

    theta: float
    factor: float
    drift: float | None
    residual: Spread
    mean_a: float
    mean_b: float
    n_b: int


def fit(points: Sequence[Point]) -> Fit | None:
    """The line through phases with finite figures, whichever of them there are; None: one of the letters has none.

    Raises:
        ValueError: two phases with the same number.
    """
    if len({point.number for point in points}) < len(points):
        raise ValueError("two phases have the same number")
    a, b = ([point.y for point in points if point.letter == letter] for letter in ("A", "B"))
    if not a or not b:
        return None
    mean_a, mean_b = math.fsum(a) / len(a), math.fsum(b) / len(b)
    if len(points) == 2:
        return Fit(mean_b - mean_a, 2.0, None, Spread(0.0, 0.0), mean_a, mean_b, 1)
    times, letters, values = _centred(points)
    tt, bt, bb = _product(times, times), _product(letters, times), _product(letters, letters)
    alone = bb - bt * bt / tt  # what of the letters the time does not say
    theta = (_product(letters, values) - bt * _product(times, values) / tt) / alone
    drift = (_product(times, values) - theta * bt) / tt
    left = [y - theta * letter - drift * time for y, letter, time in zip(values, letters, times, strict=True)]
    df = len(points) - 3
    spread = Spread(_product(left, left) / df, df) if df else Spread(0.0, 0.0)
    return Fit(theta, 1 / alone, drift, spread, mean_a, mean_b, len(b))


def drift_alone(points: Sequence[Point]) -> Spread:
    """What a drift leaves unexplained of phases with one configuration, whatever their letters: (phases - 2) degrees.

    Where nothing was changed no effect has to be told from the noise, so it costs no degree of freedom either.
    """
    df = len(points) - 2
    if df < 1:
        return Spread(0.0, 0.0)
    times, _, values = _centred(points)
    drift = _product(times, values) / _product(times, times)
    left = [y - drift * time for y, time in zip(values, times, strict=True)]
    return Spread(_product(left, left) / df, df)


def _centred(points: Sequence[Point]) -> tuple[list[float], list[float], list[float]]:
    columns = (
        [float(point.number) for point in points],
        [float(point.letter == "B") for point in points],
        [point.y for point in points],
    )
    times, letters, values = ([value - math.fsum(column) / len(column) for value in column] for column in columns)
    return times, letters, values


def _product(left: Sequence[float], right: Sequence[float]) -> float:
    return math.fsum(one * other for one, other in zip(left, right, strict=True))


@lru_cache(maxsize=256)
def variance_factor(pairs: int) -> float:
    """The variance of theta after so many whole pairs, in variances of one phase."""
    points = [Point(number, letter, 0.0) for number, letter in enumerate(order(pairs), start=1)]
    fitted = fit(points)
    return math.inf if fitted is None else fitted.factor


@dataclass(frozen=True, slots=True)
class Estimate:
    """An effect with its uncertainty.

    Attributes:
        theta: by how much B is worse than A, as a logarithm.
        factor: the variance of theta, in variances of one phase.
        spread: of one phase: the trial's own and what was known before, pooled.
        known: what was known before.
        mean_b: of the phases of B.
        n_b: how many phases of B there are.
    """

    theta: float
    factor: float
    spread: Spread
    known: Spread
    mean_b: float
    n_b: int

    @property
    def standard_error(self) -> float:
        """Of theta."""
        return math.sqrt(self.spread.variance * self.factor)

    def upper(self, alpha: float) -> float:
        """The one-sided upper bound of theta."""
        return self.theta + _times(quantile(1 - alpha, self.spread.df), self.standard_error)

    def lower(self, alpha: float) -> float:
        """The one-sided lower bound of theta."""
        return self.theta - _times(quantile(1 - alpha, self.spread.df), self.standard_error)

    def upper_of_b(self, alpha: float) -> float:
        """The one-sided upper bound of B's own figure."""
        error = math.sqrt(self.spread.variance / self.n_b)
        return self.mean_b + _times(quantile(1 - alpha, self.spread.df), error)

    def p_worse(self) -> float:
        """The one-sided p value against "B is not worse than A"."""
        return _tail(self.theta, self.standard_error, self.spread.df)

    def p_better(self) -> float:
        """The one-sided p value against "B is not better than A"."""
        return _tail(-self.theta, self.standard_error, self.spread.df)

    def after(self, pairs: int) -> Estimate:
        """The same effect and the same noise, seen in so many whole pairs."""
        df = self.known.df + max(0, 2 * pairs - 3)
        spread = Spread(self.spread.variance, df)
        return replace(self, factor=variance_factor(pairs), spread=spread, n_b=pairs)


def estimate(fitted: Fit, known: Spread) -> Estimate:
    """The effect with the bounds that the trial's own residuals and what was known before allow together."""
    spread = pooled(fitted.residual, known)
    return Estimate(fitted.theta, fitted.factor, spread, known, fitted.mean_b, fitted.n_b)


def estimate_alone(fitted: Fit, least: float) -> Estimate:
    """The effect with the bounds of the trial's own residuals, the variance being at least `least`."""
    spread = Spread(max(fitted.residual.variance, least), fitted.residual.df)
    return Estimate(fitted.theta, fitted.factor, spread, Spread(0.0, 0.0), fitted.mean_b, fitted.n_b)


def quantile(probability: float, df: float) -> float:
    """Student's quantile; infinite without degrees of freedom."""
    from scipy.special import ndtri, stdtrit  # a third of a second to import

    if df <= 0:
        return math.inf
    return float(ndtri(probability) if df > _MANY else stdtrit(df, probability))


def _times(factor: float, error: float) -> float:
    """The product; without any noise a bound is where the estimate is, if there is anything to know that from."""
    return math.inf if math.isinf(factor) else factor * error


def _tail(effect: float, error: float, df: float) -> float:
    from scipy.special import ndtr, stdtr

    if df <= 0:
        return 1.0
    if error == 0:
        return 0.0 if effect > 0 else 1.0
    ratio = effect / error
    return float(ndtr(-ratio) if df > _MANY else stdtr(df, -ratio))


def worse_log(metric: Metric, value: float) -> float:
    """The logarithm of a figure with the sign that makes more worse; infinity: without bounds, or nothing at all."""
    if metric.better == "higher":
        return -math.log(value) if value > 0 else math.inf
    # A time below what can be told apart is that of the same moment: its factor says nothing, its floor decides.
    least = SHORTEST if metric.unit == SECONDS else math.ulp(0.0)
    return math.log(max(value, least)) if math.isfinite(value) else math.inf


def figure_of(metric: Metric, y: float) -> float:
    """The figure whose `worse_log` this is."""
    return _exp(-y if metric.better == "higher" else y)


def relative_change(metric: Metric, theta: float) -> float:
    """The change of the figure itself that an effect means: +0.1 is 10 % more; at least -1."""
    return _exp(-theta if metric.better == "higher" else theta) - 1


def worse_by(metric: Metric, before: float, theta: float) -> float:
    """How much worse that is in the metric's own unit, coming from `before`."""
    return metric.worse_by(before, before * (relative_change(metric, theta) + 1)) if before else 0.0


def _exp(exponent: float) -> float:
    return math.inf if exponent > _LARGEST else math.exp(exponent)
