"""Goodput: the share of requests that were good for their user, by the limits that the service itself promises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from changectl.core.metrics import METRICS, Guard
from changectl.core.records import Record

# What one request has: a time of its own.
OF_REQUESTS = tuple(metric.name for metric in METRICS.values() if metric.source == "load" and metric.statistics)


def latency_limits(slo: Iterable[Guard], level: str) -> dict[str, float]:
    """Per latency metric the seconds that one request may take at a level; empty: nothing is promised there.

    A limit on a percentile or mean is taken for each request as it stands. Of several for one metric the loosest
    counts: a service whose P50 may be 300 ms and whose P95 800 ms promises 800 ms to each user.
    """
    limits: dict[str, float] = {}
    for guard in slo:
        name = guard.ref.metric.name
        if name in OF_REQUESTS and guard.ref.level in (None, level):
            limits[name] = max(guard.limit.value, limits.get(name, 0.0))
    return limits


def goodput(records: Sequence[Record], limits: Mapping[str, float]) -> float | None:
    """The share of scheduled requests with a good answer that is within every limit.

    None: there are no limits, no requests, or a good answer lacks a figure that a limit is about, so that nobody can
    say. A metric without meaning for an answer (one token has no time per token after the first) does not count
    against it.
    """
    if not limits or not records:
        return None
    met = 0
    for record in records:
        if record.ok:
            within = [_within(record, metric, limit) for metric, limit in limits.items()]
            if None in within and False not in within:
                return None
            met += all(within)
    return met / len(records)


def _within(record: Record, metric: str, limit: float) -> bool | None:
    if record.undefined(metric):
        return True
    value = record.duration(metric)
    return None if value is None else value <= limit
