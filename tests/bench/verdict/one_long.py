"""The rival that has just one start of each: one long A, then one long B, as long as all phases of a trial together.

The blocks of a phase's length tell the noise within a start; between the starts stands what is known of the host
(Welch, as before-and-after comparisons are done with care). More requests never make that part smaller.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tests.bench.verdict.service import Shape
from tests.bench.verdict.trial import measured
from tests.bench.verdict.worlds import Effect, Host, World

from changectl.core.judging.harm import LATENCIES, THROUGHPUTS
from changectl.core.measuring.metrics import METRICS, MetricRef
from changectl.core.trial.estimate import quantile
from changectl.core.trial.evidence import ALPHA, holm
from changectl.core.trial.noise import points_of
from changectl.core.trial.noise_model import NoiseModel, Spread
from changectl.core.trial.phases import TrialPhase

BLOCKS = 4


def judged(world: World, shape: Shape, effect: Effect, chance: np.random.Generator, noise: NoiseModel) -> str:
    """What it says: regressed, passed or inconclusive; one look, so nothing is split over several."""
    host = Host(replace(world, cold=0.0), shape, effect, chance, 2 * BLOCKS, one_start=True)
    letters = ["A"] * BLOCKS + ["B"] * BLOCKS
    phases = [measured(host, shape, number, letter)[0] for number, letter in enumerate(letters, start=1)]  # type: ignore[arg-type]
    tests = [test for ref in _figures(shape) if (test := _tested(ref, phases, noise))]
    adjusted = holm([evidence for evidence, _, _ in tests])
    if any(p < ALPHA and beyond for p, (_, beyond, _) in zip(adjusted, tests, strict=True)):
        return "regressed"
    return "passed" if tests and all(clear for _, _, clear in tests) else "inconclusive"


def _figures(shape: Shape) -> list[MetricRef]:
    guarded = [METRICS[name] for name in (*LATENCIES, *THROUGHPUTS) if METRICS[name].margin(shape.service_class)]
    return [
        MetricRef(metric, statistic, level)
        for metric in guarded
        for statistic in (("p50", "p95") if metric.statistics else (None,))
        for level in shape.levels
    ]


def _tested(ref: MetricRef, phases: Sequence[TrialPhase], noise: NoiseModel) -> tuple[float, bool, bool] | None:
    """The p value, whether the effect is beyond its margin, and whether its bound is within."""
    from scipy.special import stdtr

    points = [point for point in points_of(ref, phases) if math.isfinite(point.y)]
    a, b = (np.array([point.y for point in points if point.letter == letter]) for letter in "AB")
    if len(a) < 2 or len(b) < 2:
        return None
    known: Spread = noise.of(str(ref)).spread
    terms = [(a.var(ddof=1) / len(a), len(a) - 1), (b.var(ddof=1) / len(b), len(b) - 1), (2 * known.variance, known.df)]
    variance = float(sum(term for term, _ in terms))
    df = variance**2 / sum(term**2 / freedom for term, freedom in terms) if variance else 1.0
    theta, error = float(b.mean() - a.mean()), math.sqrt(variance)
    margin = math.log1p(ref.metric.margin("interactive", ref.statistic) or 0.05)
    upper = theta + quantile(1 - ALPHA, df) * error
    return float(stdtr(df, -theta / error)) if error else 1.0, theta >= margin, upper < margin
