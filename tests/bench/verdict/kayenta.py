"""Kayenta's judge, written anew from what its source does, to be held against ours on the same requests.

After `NetflixACAJudge.scala`, `MannWhitneyClassifier.scala`, `MannWhitney.scala` (spinnaker/kayenta, 2025-04):
per metric a Mann-Whitney test with the interval of the shift, bounds that are a share of the shift itself, and a gate
on the ratio of the means; then the share of metrics that pass. Outliers are kept and missing values removed, as by
default.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import ndtri

Array = npt.NDArray[np.float64]
Label = Literal["Pass", "High", "Low", "Nodata"]
CONFIDENCE, TOLERANCE = 0.98, 0.25  # fixed in the judge's code
ALLOWED_INCREASE = 1.0  # of the ratio of the means: none at all
PASS, MARGINAL = 75.0, 50.0  # the limits of the documentation's examples
_ROOT = 1e-4  # absolute; values have to come in milliseconds to make sense of it


@dataclass(frozen=True)
class Shift:
    """By how much the experiment lies above the control, and the interval of that."""

    estimate: float
    low: float
    high: float


def shift(control: Array, experiment: Array, confidence: float = CONFIDENCE) -> Shift:
    """The shift at which the Mann-Whitney statistic is zero, and those at which it is at its quantiles.

    Raises:
        ValueError: all values are the same.
    """
    least, most = float(experiment.min() - control.max()), float(experiment.max() - control.min())
    ordered, values = np.sort(control), np.sort(experiment)
    statistic = partial(_statistic, values, ordered)
    quantile = float(ndtri((1 - confidence) / 2))

    def root(level: float) -> float:
        if statistic(least) - level <= 0:
            return least
        if statistic(most) - level >= 0:
            return most
        return float(brentq(lambda at: statistic(at) - level, least, most, xtol=_ROOT, maxiter=1000))

    return Shift(root(0.0), root(-quantile), root(quantile))


def _statistic(experiment: Array, control: Array, moved: float) -> float:
    """The normal deviate after taking `moved` from the experiment: ties corrected, half a point for continuity."""
    x, y = len(experiment), len(control)
    values = experiment - moved
    below = np.searchsorted(control, values, side="left")
    up_to = np.searchsorted(control, values, side="right")
    beyond = float((below + up_to).sum()) / 2 - x * y / 2
    variance = x * y / 12 * (x + y + 1 - _ties(values, control) / ((x + y) * (x + y - 1)))
    if variance <= 0:
        raise ValueError("all values are the same")
    return (beyond - 0.5 * float(np.sign(beyond))) / math.sqrt(variance)


def _ties(values: Array, control: Array) -> float:
    every = np.sort(np.concatenate([values, control]))
    if (every[1:] != every[:-1]).all():
        return 0.0
    counts = np.unique(every, return_counts=True)[1].astype(np.float64)
    return float((counts**3 - counts).sum())


def label(control: Array, experiment: Array, *, either: bool = False) -> Label:
    """The label of one metric of which more is worse; `either`: less is taken for a failure as well, as by default."""
    control, experiment = control[~np.isnan(control)], experiment[~np.isnan(experiment)]
    if not len(control) or not len(experiment):
        return "Nodata"
    if len(control) == len(experiment) and bool((np.sort(control) == np.sort(experiment)).all()):
        return "Pass"
    if len({*control.tolist()}) == 1 and len({*experiment.tolist()}) == 1:
        if control[0] == experiment[0]:
            return "Pass"
        control, experiment = _jittered(control), _jittered(experiment)
    found = shift(control, experiment)
    bound = TOLERANCE * abs(found.estimate)
    mean = float(control.mean())
    ratio = float(experiment.mean()) / mean if mean else math.nan
    if found.low > bound and not ratio < ALLOWED_INCREASE:
        return "High"
    if either and found.high < -bound and not ratio > 1 / ALLOWED_INCREASE:
        return "Low"
    return "Pass"


def _jittered(values: Array) -> Array:
    """Two constants get a little noise, so that there is something to rank."""
    noise = np.random.default_rng(0).normal(0, 1e-5 * abs(float(values[0])) or 1e-12, len(values))
    moved: Array = values + noise
    return moved


def score(labels: Sequence[Label]) -> float:
    """The share of the metrics that pass, in percent, of one group; 0 where half of them have no data, or more."""
    if 2 * labels.count("Nodata") >= len(labels):
        return 0.0
    counted = [one for one in labels if one != "Nodata"]
    return round(100 * counted.count("Pass") / len(counted), 2)
