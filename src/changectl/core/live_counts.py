"""Shares of live requests from an engine's own counters: failed, preempted, slower than a limit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from changectl.core.engine_page import Buckets, EnginePage, Reading
from changectl.core.metrics import Guard
from changectl.core.proportions import Count
from changectl.core.units import SECONDS

# A client's latency -> the engine's own, the first that it exposes. The engine's begins later, so it is never longer.
TIMES: Mapping[str, Sequence[str]] = {
    "ttft_user": ("ttft",),
    "ttft_sent": ("ttft",),
    "tpot": ("tpot",),
    "e2e_user": ("e2e_time",),
    "e2e_sent": ("e2e_time",),
}
BEYOND = {"p50": 0.5, "p95": 0.05, "p99": 0.01}  # the share of requests that a limit on a percentile lets be slower


def ended(page: EnginePage) -> Count | None:
    """Requests that ended since the process began, and those of them that failed; None: not exposed.

    What clients gave up is neither.
    """
    good, failed = page.value("requests_ok"), page.value("requests_failed")
    failed = page.value("http_errors") if failed is None else failed
    return None if good is None or failed is None else Count(failed, good + failed)


def counts(page: EnginePage, slo: Sequence[Guard]) -> dict[str, Count]:
    """All shares that the engine counts, since the process began: `failures`, `preemptions`, each limit by its name."""
    found = {} if (requests := ended(page)) is None else {"failures": requests}
    preempted = page.value("preemptions")
    if requests is not None and preempted is not None:
        found["preemptions"] = Count(preempted, requests.n)
    for name, guard in slow(slo).items():
        reading = time_of(page.readings, guard.ref.metric.name)
        if reading is not None and (count := over(reading.buckets, guard.limit.value)) is not None:
            found[name] = count
    return found


def slow(slo: Sequence[Guard]) -> dict[str, Guard]:
    """The limits on percentiles of a latency, by name; where levels have limits of their own, the loosest of them."""
    found: dict[str, Guard] = {}
    for guard in slo:
        name = guard.ref.name
        if guard.ref.metric.unit != SECONDS or guard.ref.statistic not in BEYOND:
            continue
        if name not in found or guard.limit.value > found[name].limit.value:
            found[name] = guard
    return found


def time_of(readings: Mapping[str, Reading], metric: str) -> Reading | None:
    """What the engine tells of a client's latency; None: not exposed."""
    return next((readings[name] for name in TIMES.get(metric, ()) if name in readings), None)


def over(buckets: Buckets, limit: float) -> Count | None:
    """The observations that were surely longer than a limit; None: the buckets end below it, or there are none."""
    edge = next((edge for edge, _ in buckets if edge >= limit), math.inf)
    if math.isinf(edge):
        return None
    within, total = dict(buckets)[edge], buckets[-1][1]
    return Count(total - within, total)
