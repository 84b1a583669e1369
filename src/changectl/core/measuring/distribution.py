"""How a duration was spread over the requests of a level, before and after: what share had it by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from changectl.core.measuring.durations import Durations
from changectl.core.measuring.records import NOT_SENT, OK, Record, Records
from changectl.core.measuring.statistics import ascending

METRICS = ("ttft_user", "tpot", "e2e_user")
MOST_POINTS = 160  # of a curve: more cannot be told apart on paper


@dataclass(frozen=True, slots=True)
class Curve:
    """The distribution of one configuration.

    Attributes:
        points: (seconds, share of all requests that had it by then), ascending.
        n: requests that had it, or failed.
        failed: requests without a good answer, which never had it.
    """

    points: tuple[tuple[float, float], ...]
    n: int
    failed: int

    def at(self, share: float) -> float | None:
        """By when that share of the requests had it; None: it never did, or nothing was measured."""
        return next((seconds for seconds, reached in self.points if reached >= share), None)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A metric at one level; None: nothing of that configuration was measured there."""

    level: str
    metric: str
    before: Curve | None
    after: Curve | None


def distributions(before: Iterable[Record], after: Iterable[Record], levels: Sequence[str]) -> list[Distribution]:
    """Every metric at every level of which there is anything, all phases of a configuration together."""
    sides = [Records.of(records) for records in (before, after)]
    found = []
    for level in levels:
        here = [_due(side, level) for side in sides]
        for metric in METRICS:
            curves = [_curve(side, metric) for side in here]
            if any(curves):
                found.append(Distribution(level, metric, *curves))
    return found


def _due(records: Records, level: str) -> Records:
    both = zip(records.texts("level"), records.texts("cls"), strict=True)
    return records.only([one == level and cls != NOT_SENT for one, cls in both])


def _curve(records: Records, metric: str) -> Curve | None:
    good = records.only([cls == OK for cls in records.texts("cls")])
    values = ascending(Durations(good).values(metric))
    if not values:
        return None
    failed = len(records) - len(good)
    n = len(values) + failed
    last = len(values) - 1
    chosen = sorted({round(place * last / (MOST_POINTS - 1)) for place in range(MOST_POINTS)})
    return Curve(tuple((values[index], (index + 1) / n) for index in chosen), n, failed)
