"""Goodput: the share of requests that were good for their user, by the limits that the service itself promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from changectl.core.measuring.durations import DURATIONS, Durations
from changectl.core.measuring.metrics import Guard


def latency_limits(slo: Iterable[Guard], level: str) -> dict[str, float]:
    """Per latency metric the seconds that one request may take at a level; empty: nothing is promised there.

    A limit on a percentile or mean is taken for each request as it stands. Of several for one metric the loosest
    counts: a service whose P50 may be 300 ms and whose P95 800 ms promises 800 ms to each user.
    """
    limits: dict[str, float] = {}
    for guard in slo:
        name = guard.ref.metric.name
        if name in DURATIONS and guard.ref.level in (None, level):
            limits[name] = max(guard.limit.value, limits.get(name, 0.0))
    return limits


def goodput(good: Durations, scheduled: int, limits: Mapping[str, float]) -> float | None:
    """The share of scheduled requests with a good answer that is within every limit.

    None: there are no limits, no requests, or a good answer lacks a figure that a limit is about, so that nobody can
    say. A metric without meaning for an answer (one token has no time per token after the first) does not count
    against it.

    Args:
        good: the requests with a good answer.
        scheduled: how many requests there were.
        limits: the most seconds per latency metric.
    """
    if not limits or not scheduled:
        return None
    met = perhaps = good.all()
    for name, limit in limits.items():
        within = (good[name] <= limit) | good.undefined(name)
        met, perhaps = met & within, perhaps & (within | good.missing(name))
    return int(met.sum()) / scheduled if bool((met == perhaps).all()) else None
