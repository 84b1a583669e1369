"""Shares of failed requests: exact bounds, exact evidence, and what is left of it when failures come in bursts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Count:
    """So many failed of so many; no whole numbers after a correction for bursts."""

    failed: float
    n: float

    @property
    def share(self) -> float:
        """The share; 0 of nothing."""
        return self.failed / self.n if self.n else 0.0

    def times(self, factor: float) -> Count:
        """The same share of so many times the requests."""
        return Count(self.failed * factor, self.n * factor)


def total(counts: Iterable[Count]) -> Count:
    """All of them together."""
    listed = list(counts)
    return Count(math.fsum(count.failed for count in listed), math.fsum(count.n for count in listed))


def fisher(before: Count, after: Count) -> float:
    """One-sided p value of Fisher's exact test that the second share is not higher than the first."""
    from scipy.stats import fisher_exact  # a second to import, and only needed when failures grew

    old, new = ((round(count.failed), round(count.n)) for count in (before, after))
    table = [[new[0], new[1] - new[0]], [old[0], old[1] - old[0]]]
    return float(fisher_exact(table, alternative="greater").pvalue)


def upper(count: Count, alpha: float) -> float:
    """The one-sided upper bound of a share (Clopper and Pearson); 1 of nothing. Without failures about -ln(alpha)/n."""
    from scipy.special import betaincinv

    if count.failed >= count.n:
        return 1.0
    return float(betaincinv(count.failed + 1, count.n - count.failed, 1 - alpha))


def lower(count: Count, alpha: float) -> float:
    """The one-sided lower bound of a share; 0 of nothing."""
    return 1 - upper(Count(count.n - count.failed, count.n), alpha) if count.failed else 0.0


def upper_difference(before: Count, after: Count, alpha: float) -> float:
    """The one-sided upper bound of after - before, from the bounds of both (Newcombe's hybrid of two intervals)."""
    above, below = upper(after, alpha) - after.share, before.share - lower(before, alpha)
    return after.share - before.share + math.hypot(above, below)


def design_effect(*letters: Sequence[Sequence[Count]]) -> float:
    """By how much counts differ more between phases than chance explains, at least 1: such requests are worth fewer.

    Pearson's chi-squared per degree of freedom over the phases of each letter; the larger of the letters counts. Each
    level is held against its own share: that peaks fail more often than quiet times is no burst.

    Args:
        letters: of each letter its levels, and of each level the counts of its phases.
    """
    return max([1.0, *(_heterogeneity(levels) for levels in letters)])


def _heterogeneity(levels: Sequence[Sequence[Count]]) -> float:
    told = [_chi_squared(level) for level in levels if len(level) > 1 and 0 < total(level).share < 1]
    freedom = sum(df for _, df in told)
    return math.fsum(squares for squares, _ in told) / freedom if freedom else 0.0


def _chi_squared(level: Sequence[Count]) -> tuple[float, int]:
    share = total(level).share
    squares = ((count.failed - count.n * share) ** 2 / (count.n * share * (1 - share)) for count in level if count.n)
    return math.fsum(squares), len(level) - 1
