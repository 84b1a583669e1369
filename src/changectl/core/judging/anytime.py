"""Always-valid tests: they may be looked at as often as one likes, and still cry wolf no more often than they say.

Both are bets against the claim that nothing is wrong. While the claim holds a stake grows on average at no look, so the
chance that it EVER reaches 1/alpha is at most alpha, however often one looks and whenever one stops (Ville's
inequality). Sources: Robbins, Ann. Math. Statist. 41 (1970) 1397; Howard, Ramdas, McAuliffe and Sekhon, Ann. Statist.
49 (2021), arXiv 1810.08240; Waudby-Smith and Ramdas, J. R. Statist. Soc. B 86 (2024), arXiv 2010.09686.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from changectl.core.measuring.proportions import Count

STAKES = 10  # shares that are bet on: half way from the limit to 1, a quarter of the way, and so on
LOOKS = 5  # no single look may win more than a fifth of what is needed: what fails in one moment fails together
CLIMBS = 0.9  # how often a value that climbs steadily is the highest so far


@dataclass(frozen=True, slots=True)
class ShareTest:
    """Whether a share of requests is beyond a limit, by all that was seen so far.

    Each stake bets on one larger share and is multiplied, look by look, by how much better that share explains what
    came than the limit does: a likelihood ratio, whose mean is at most 1 for every share up to the limit. What one look
    can win is capped, which keeps that so.

    Attributes:
        limit: the largest share that is no harm.
        alpha: the chance of a false alarm, over all looks together.
        seen: what came so far.
        stakes: the logarithm of each.
        looks: how many of them saw a request.
    """

    limit: float
    alpha: float
    seen: Count = field(default=Count(0, 0))
    stakes: tuple[float, ...] = (0.0,) * STAKES
    looks: int = 0

    def __post_init__(self) -> None:
        """Raises ValueError for a limit or an alpha that is no share between 0 and 1."""
        if not (0 < self.limit < 1 and 0 < self.alpha < 1):
            raise ValueError(f"a share of {self.limit:g} cannot be tested at {self.alpha:g}")

    def after(self, count: Count) -> ShareTest:
        """The test after one more look: what came since the last one."""
        cap = math.log(STAKES / self.alpha) / LOOKS
        stakes = tuple(
            stake + min(cap, _gain(count, self.limit, self.limit + (1 - self.limit) / 2**number))
            for number, stake in enumerate(self.stakes, 1)
        )
        seen = Count(self.seen.failed + count.failed, self.seen.n + count.n)
        return replace(self, seen=seen, stakes=stakes, looks=self.looks + (count.n > 0))

    @property
    def evidence(self) -> float:
        """How many times its stake the bet is worth; at least 1/alpha by chance: never more often than alpha."""
        return math.fsum(math.exp(min(stake, 700.0)) for stake in self.stakes) / STAKES

    @property
    def beyond(self) -> bool:
        """Whether the share is beyond its limit."""
        return self.evidence * self.alpha >= 1


def _gain(count: Count, limit: float, share: float) -> float:
    """The logarithm of how much better a share explains a count than the limit does."""
    good = count.n - count.failed
    return count.failed * math.log(share / limit) + good * math.log((1 - share) / (1 - limit))


def climbing(values: Sequence[float]) -> float:
    """The worth of a bet that values climb, against the claim that their order is mere chance.

    If it is, the k-th value is the highest so far with a chance of 1/k, whatever the distribution and independently of
    which values before it were (Renyi 1962). The bet says `CLIMBS` instead. A value that equals the highest is none.

    Args:
        values: in the order in which they came, for example medians of equal spans of time.
    """
    worth = 1.0
    for place, (highest, value) in enumerate(zip(accumulate(values, max), values[1:], strict=False), 2):
        worth *= CLIMBS * place if value > highest else (1 - CLIMBS) * place / (place - 1)
    return worth
