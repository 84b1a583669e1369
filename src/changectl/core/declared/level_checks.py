"""What of a plan's levels could never be judged, told while the plan is read: too few requests, limits without data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from changectl.core.declared.source import Source
from changectl.core.errors import Problem
from changectl.core.judging.harm import MINIMUM_OK
from changectl.core.measuring.goodput import latency_limits
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.metrics import Guard, MetricRef
from changectl.core.measuring.statistics import MINIMUM
from changectl.core.units import format_duration

MOST_REQUESTS = 1_000_000  # of a level, as many as `requests` may say


def sizes(measured: Mapping[str, LevelSize], file: Source) -> Iterator[Problem]:
    """Levels that are not what they seem: too short for any verdict, or for all of their streams to run.

    Args:
        measured: the levels and how much of each.
        file: where they stand.
    """
    for name, size in measured.items():
        if found := _too_few(name, size) or _too_many(name, size) or _streams_in_vain(name, size):
            yield file.problem(("conditions", "levels", name), *found)


def _too_few(name: str, size: LevelSize) -> tuple[str, str] | None:
    """An open level's number of requests follows from its time; `requests` themselves are checked where they stand."""
    if size.requests is not None or size.count is None or size.rate is None or size.count >= MINIMUM_OK:
        return None
    message = f"`{name}` gets {_requests(size)}; each level needs {MINIMUM_OK} good answers in each phase"
    return message, f"write `seconds: {_seconds_for(MINIMUM['p95'], size)}` under `conditions`, or a higher rate"


def _too_many(name: str, size: LevelSize) -> tuple[str, str] | None:
    if size.count is None or size.count <= MOST_REQUESTS:
        return None
    return f"`{name}` gets {_requests(size)}; a level has at most {MOST_REQUESTS}", "write a shorter time in `seconds`"


def _streams_in_vain(name: str, size: LevelSize) -> tuple[str, str] | None:
    streams = size.load.streams or 0
    if size.requests is not None and size.requests < streams:
        return (
            f"{size.requests} requests cannot keep {streams} streams busy",
            f"write `requests: {2 * streams}` or more",
        )
    if size.requests is None and size.seconds is not None and size.ramp >= size.seconds:
        ramp, lasts = format_duration(size.ramp), format_duration(size.seconds)
        message = f"the last of {streams} streams begins after {ramp}, and `{name}` lasts {lasts}"
        return message, f"write at least `seconds: {math.ceil(2 * size.ramp)}s`"
    return None


def percentile(guard: Guard, measured: Mapping[str, LevelSize], length: Source) -> tuple[str, str] | None:
    """Why a limit on a percentile can never be judged, and what to write; None: it can."""
    statistic = guard.ref.statistic or ""
    needed = MINIMUM.get(statistic, 0)
    for name in _meant(guard.ref, measured):
        size = measured[name]
        if size.count is None or size.count >= needed:
            continue
        message = f"a {statistic.upper()} needs {needed} requests per level, and "
        if size.requests is not None:
            message, enough = f"{message}{length.file} says `requests: {size.requests}`", f"requests: {needed}"
        else:
            message, enough = f"{message}`{name}` gets {_requests(size)}", f"seconds: {_seconds_for(needed, size)}"
        return message, f"write `{enough}` under `conditions`, or limit `{guard.ref.metric.name}_p50`"
    return None


def goodput(
    ref: MetricRef, measured: Mapping[str, LevelSize], slo: Sequence[Guard], service: str
) -> tuple[str, str] | None:
    """Why nobody can say how many requests were good for their user, and what to write; None: one can."""
    if ref.metric.name != "goodput":
        return None
    for name in _meant(ref, measured):
        if not latency_limits(slo, name):
            message = f"`goodput` counts requests within the latency limits of the service, and `{name}` has none"
            return message, f"write for example `slo: {{ttft_user_p95: <= 800ms}}` in {service}"
    return None


def _meant(ref: MetricRef, measured: Mapping[str, LevelSize]) -> list[str]:
    """The levels that a reference means, of those that are measured."""
    return [name for name in measured if ref.level in (None, name)]


def _requests(size: LevelSize) -> str:
    lasts = "" if size.lasts is None else f": {size.load} for {format_duration(size.lasts)}"
    return f"{size.count} request{'' if size.count == 1 else 's'}{lasts}"


def _seconds_for(requests: int, size: LevelSize) -> str:
    return format_duration(float(math.ceil(requests / (size.load.rate or 1.0))))
