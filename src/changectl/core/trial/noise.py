"""What a trial says about the noise of its host: whether it is as was known before, and what it adds to that.

Noise that was assumed too small makes harm and gains of chance. So each figure's own residuals are held against what
was assumed for it, and all of them together; what is refuted is judged by the trial's own phases alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from changectl.core.judging.harm import LATENCIES, THROUGHPUTS
from changectl.core.measuring.metrics import METRICS, MetricRef
from changectl.core.trial.estimate import Estimate, Fit, Point, drift_alone, estimate, estimate_alone, fit, worse_log
from changectl.core.trial.noise_model import NoiseModel, Source, Spread
from changectl.core.trial.phases import TrialPhase, level_names

Kind = tuple[str, Source]

REFUTED = 0.01  # of one figure: so improbable that noise known before is not believed
REFUTED_BY_ALL = 0.05  # of all figures of a kind: that costs a further pair at most, and catches a host that changed
NOTHING = 1e-12  # a variance below it is the last bit of a computation
LEAST_PAIRS = {"calibrated": 2, "uncalibrated": 3}  # with two, a single degree of freedom would have to refute a guess
_STATISTICS = ("p50", "p95", "mean")
_TAIL = ("p95", "p99")


@dataclass(frozen=True, slots=True)
class TrialNoise:
    """What is assumed about the noise in one trial.

    Attributes:
        model: what was known before.
        times: kind and source (see `kind`) -> how many times the known variance this trial's figures vary by.
        doubted: those of them in which that is too much for chance.
    """

    model: NoiseModel
    times: Mapping[Kind, float] = field(default_factory=dict)
    doubted: frozenset[Kind] = frozenset()

    def least_pairs(self, ref: MetricRef) -> int:
        """After how many pairs the evidence on a figure counts."""
        return LEAST_PAIRS[self.model.of(str(ref)).source]

    def estimate(self, ref: MetricRef, fitted: Fit) -> Estimate:
        """The effect on a figure, with the noise that is believed."""
        known, own = self.model.of(str(ref)), kind(ref, self.model)
        times = max(1.0, self.times.get(own, 1.0))
        if own in self.doubted or refuted(fitted.residual, known.spread):
            return estimate_alone(fitted, known.spread.variance * times)
        if known.source == "calibrated":
            return estimate(fitted, known.spread)
        # The prior is a guess about the host: what all figures together say of it is the better one.
        return estimate(fitted, Spread(known.spread.variance * times, known.spread.df))


def kind(ref: MetricRef, model: NoiseModel) -> Kind:
    """Figures of one kind are noisy alike: a tail is much more so than a median, a mean or a rate.

    What the engine tells of a whole phase, such as how much its cache holds, has no part in the noise of any load.
    """
    if not ref.metric.per_level:
        return "fact", model.of(str(ref)).source
    return "tail" if ref.statistic in _TAIL else "body", model.of(str(ref)).source


def noise_of(phases: Sequence[TrialPhase], model: NoiseModel) -> TrialNoise:
    """Hold the noise of the phases against what is known, by the median ratio of the figures of a kind."""
    ratios: dict[Kind, list[float]] = {}
    freedom: dict[Kind, tuple[float, float]] = {}
    for ref, fitted in _fits(phases, (*LATENCIES, *THROUGHPUTS)):
        known = model.of(str(ref)).spread
        if not fitted.residual.df or not known.variance:
            continue
        own = kind(ref, model)
        ratios.setdefault(own, []).append(fitted.residual.variance / known.variance)
        freedom[own] = (fitted.residual.df, min(known.df, freedom.get(own, (0.0, math.inf))[1]))
    middle = {own: median(found) for own, found in ratios.items()}
    times = {own: ratio / _median_of_one(freedom[own][0]) for own, ratio in middle.items()}
    doubted = frozenset(own for own in middle if middle[own] > _most(*freedom[own], REFUTED_BY_ALL))
    return TrialNoise(model, times, doubted)


def refuted(own: Spread, known: Spread) -> bool:
    """Whether a figure differs more from phase to phase than what was known of it lets chance explain (F test)."""
    if own.df <= 0 or known.df <= 0 or own.variance < NOTHING:
        return False
    return known.variance == 0 or own.variance / known.variance > _most(own.df, known.df, REFUTED)


def _most(own_df: float, known_df: float, alpha: float) -> float:
    """The ratio of two variances that chance exceeds with this probability alone."""
    from scipy.special import fdtri

    return float(fdtri(own_df, known_df, 1 - alpha))


def _median_of_one(df: float) -> float:
    """The median of an estimated variance of 1 (Wilson and Hilferty): with few degrees of freedom it is mostly low."""
    return max((1 - 2 / (9 * df)) ** 3, NOTHING)


def points_of(ref: MetricRef, phases: Sequence[TrialPhase]) -> list[Point]:
    """The logarithms of a figure, of those phases that have one; infinity: without bounds."""
    return [
        Point(phase.number, phase.letter, worse_log(ref.metric, value))
        for phase in phases
        if (value := phase.measurement.value(ref)) is not None
    ]


def spreads_of(phases: Sequence[TrialPhase]) -> dict[str, Spread]:
    """Figure -> its spread from phase to phase, for `NoiseModel.updated`; empty: there are too few phases.

    Each level has its own: a peak is noisier than an idle hour, and neither may be taken for the other.
    """
    return {str(ref): fitted.residual for ref, fitted in _fits(phases) if fitted.residual.df}


def spreads_unchanged(phases: Sequence[TrialPhase]) -> dict[str, Spread]:
    """As `spreads_of`, of phases that all had the same configuration."""
    return {str(ref): spread for ref, points in _whole(phases) if (spread := drift_alone(points)).df}


def _fits(phases: Sequence[TrialPhase], names: Collection[str] = METRICS.keys()) -> Iterator[tuple[MetricRef, Fit]]:
    for ref, points in _whole(phases, names):
        if fitted := fit(points):
            yield ref, fitted


def _whole(
    phases: Sequence[TrialPhase], names: Collection[str] = METRICS.keys()
) -> Iterator[tuple[MetricRef, list[Point]]]:
    """Every figure of these metrics that all phases have, and that has bounds in all of them."""
    for ref in _refs(phases, names):
        points = points_of(ref, phases)
        if len(points) == len(phases) and all(math.isfinite(point.y) for point in points):
            yield ref, points


def _refs(phases: Sequence[TrialPhase], names: Collection[str]) -> Iterator[MetricRef]:
    for metric in METRICS.values():
        if metric.name == "failures" or metric.name not in names:
            continue
        for statistic in _STATISTICS if metric.statistics else [None]:
            for level in level_names(phases) if metric.per_level else [None]:
                yield MetricRef(metric, statistic, level)
