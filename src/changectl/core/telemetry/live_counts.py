"""Shares of live requests from an engine's own counters: failed, preempted, slower than a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from changectl.core.measuring.metrics import Guard
from changectl.core.measuring.proportions import Count
from changectl.core.telemetry.engine_page import Buckets, EnginePage, Reading
from changectl.core.units import SECONDS

# A client's latency -> the engine's own, the first that it exposes. The engine's begins later, so it is never longer.
TIMES: Mapping[str, Sequence[str]] = {
    "ttft_user": ("ttft",),
    "ttft_sent": ("ttft",),
    "tpot": ("tpot",),
    "e2e_user": ("e2e_time",),
    "e2e_sent": ("e2e_time",),
}
Figure = Callable[[str], float | None]  # a canonical name -> its value on a page, or its growth between two
_FAILED = ("requests_failed", "http_errors")
BEYOND = {"p50": 0.5, "p95": 0.05, "p99": 0.01}  # the share of requests that a limit on a percentile lets be slower


def failures(value: Figure) -> float | None:
    """Requests that failed, as the engine counts them; None: not exposed.

    What the engine ended with an error comes to clients as a status of 500 or above as a rule, and what the server in
    front of it refused has that status only. So the larger of the two is meant, and not their sum.
    """
    return max(known) if (known := [found for name in _FAILED if (found := value(name)) is not None]) else None


def ended(value: Figure) -> Count | None:
    """Requests that ended, and those of them that failed; None: not exposed. What clients gave up is neither."""
    good, failed = value("requests_ok"), failures(value)
    return None if good is None or failed is None else Count(failed, good + failed)


def given_up(value: Figure) -> Count | None:
    """Requests that came to an end of any kind, and those of them that clients gave up; None: not exposed."""
    requests, aborted = ended(value), value("requests_aborted")
    return None if requests is None or aborted is None else Count(aborted, requests.n + aborted)


def counts(page: EnginePage, slo: Sequence[Guard]) -> dict[str, Count]:
    """All shares that the engine counts, since the process began: by name (`failures`, `given_up`, a limit)."""
    found = {} if (requests := ended(page.value)) is None else {"failures": requests}
    preempted = page.value("preemptions")
    if requests is not None and preempted is not None:
        found["preemptions"] = Count(preempted, requests.n)
    if (left := given_up(page.value)) is not None:
        found["given_up"] = left
    for name, guard in slow(slo).items():
        reading = time_of(page.readings, guard.ref.metric.name)
        if reading is not None and (count := over(reading.buckets, guard.limit.value)) is not None:
            found[name] = count
    return found


def slow(slo: Sequence[Guard]) -> dict[str, Guard]:
    """The limits on percentiles of a latency, by name; where levels have limits of their own, the loosest of them."""
    timed = [guard for guard in slo if guard.ref.metric.unit == SECONDS and guard.ref.statistic in BEYOND]
    return {guard.ref.name: guard for guard in loosest(timed)}


def loosest(guards: Sequence[Guard]) -> list[Guard]:
    """The limits of the whole service, and of those of single levels the loosest of each name: users have no levels."""
    found: dict[str, Guard] = {}
    for guard in guards:
        name = guard.ref.name
        if guard.ref.level and (name not in found or not found[name].limit.holds(guard.limit.value)):
            found[name] = guard
    whole = [guard for guard in guards if not guard.ref.level]
    named = {guard.ref.name for guard in whole}
    return [*whole, *(guard for name, guard in found.items() if name not in named)]


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
