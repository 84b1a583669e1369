"""Percentiles over scheduled requests: a failure is infinitely slow, and too few requests give no percentile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from changectl.core.measuring.durations import Figures

# Below these counts a percentile has no finite upper confidence bound (0.5^5, 0.95^59 and 0.99^299 are at most 5 %).
MINIMUM = {"p50": 5, "p95": 60, "p99": 299}
FAR = 2.0  # times the median: beyond it an answer is one that its user waited for
_PERCENT = {"p50": 50, "p95": 95, "p99": 99}


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The type-7 percentile (linear between order statistics) of ascending values, infinity allowed.

    Raises:
        ValueError: no values.
    """
    if not ordered:
        raise ValueError("a percentile of nothing does not exist")
    # Whole numbers: a product like 0.95 * 60 that misses an integer by one bit would mix a finite value with infinity.
    index, rest = divmod((len(ordered) - 1) * percent, 100)
    low = ordered[index]
    if rest == 0 or math.isinf(low):
        return low
    high = ordered[index + 1]
    return high if math.isinf(high) else low + (high - low) * rest / 100


def ascending(values: Figures) -> list[float]:
    """The values in order, the least first."""
    import numpy as np  # a tenth of a second to import, and not needed by most commands

    ordered: list[float] = np.sort(values).tolist()
    return ordered


def describe(good: Figures, failed: int) -> dict[str, float | None]:
    """p50, p95, p99 over good and failed requests (a failure is infinitely slow), and the mean of the good ones alone.

    None: too few requests for that statistic, or no good value at all although not everything failed.
    """
    values = ascending(good)
    ordered = values + [math.inf] * failed
    statistics: dict[str, float | None] = {}
    for name, percent in _PERCENT.items():
        statistics[name] = percentile(ordered, percent) if len(ordered) >= MINIMUM[name] else None
    statistics["mean"] = math.fsum(values) / len(values) if values else None
    return statistics


def far(values: Figures) -> int:
    """How many values are beyond `FAR` times their median."""
    import numpy as np

    return int((values > FAR * np.median(values)).sum()) if len(values) else 0


def nothing() -> dict[str, float | None]:
    """The statistics of a metric without data."""
    return dict.fromkeys((*_PERCENT, "mean"))
