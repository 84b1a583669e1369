"""What an engine did between two looks at its metrics page: the later minus the earlier, unless it began anew."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from changectl.core.telemetry.engine_page import Buckets, EnginePage, Reading
from changectl.core.telemetry.engine_series import BY_NAME, CANONICAL

BEGAN_ANEW = "the engine's counters began anew: it was restarted in between"


@dataclass(frozen=True, slots=True)
class Bound:
    """A percentile as a histogram knows it: between two edges."""

    at_least: float  # seconds
    at_most: float | None  # None: beyond the last edge, so nobody knows


@dataclass(frozen=True, slots=True)
class EngineWindow:
    """By how much counters and times grew; gauges have no growth and stand in samples."""

    gains: Mapping[str, Reading] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)  # name -> why
    restarted: bool = False

    def gain(self, name: str) -> float | None:
        """The growth, None where it is missing. Raises KeyError: there is no such canonical name."""
        BY_NAME[name]
        return self.gains[name].value if name in self.gains else None

    def share(self, part: str, whole: str) -> float | None:
        """One counter's growth as a share of another's; None: missing, nothing there, or impossible."""
        one, all_of_it = self.gain(part), self.gain(whole)
        if one is None or not all_of_it:
            return None
        return one / all_of_it if 0 <= one <= all_of_it else None

    def percentile(self, name: str, share: float) -> Bound | None:
        """Between which edges a percentile of a time lies (share 0.95: P95); None: no histogram, or no observation."""
        found = self.gains.get(name)
        return None if found is None or not found.buckets else percentile(found.buckets, share)

    def to_json(self) -> dict[str, Any]:
        """The record: name -> growth, with the number of observations of a time where the engine counts them."""
        gains = {
            name: {"value": reading.value, **({} if reading.count is None else {"count": reading.count})}
            for name, reading in self.gains.items()
        }
        return {"gains": gains, "missing": dict(self.missing), "restarted": self.restarted}


def window(earlier: EnginePage, later: EnginePage) -> EngineWindow:
    """The growth from one page to the next.

    One series that fell, or that is gone, says that the process is another one: then nothing is known about any of
    them, since those that grew beyond their old value would look sound.
    """
    names = [row.name for row in CANONICAL if row.kind != "gauge"]
    if _began_anew(earlier, later):
        both = {name for name in names if name in earlier.readings or name in later.readings}
        missing = {name: BEGAN_ANEW if name in both else later.missing.get(name, "") for name in names}
        return EngineWindow(missing=missing, restarted=True)
    gains: dict[str, Reading] = {}
    missing = {}
    for name in names:
        before, after = earlier.readings.get(name), later.readings.get(name)
        if before is None or after is None:
            missing[name] = later.missing.get(name) or earlier.missing.get(name, "")
        else:
            gains[name] = _grown(before, after)
    return EngineWindow(gains, missing)


def _began_anew(earlier: EnginePage, later: EnginePage) -> bool:
    start, now = earlier.value("process_start"), later.value("process_start")
    if start is not None and now is not None and start != now:
        return True
    shared = [name for name in earlier.readings if name in later.readings and BY_NAME[name].kind != "gauge"]
    return any(
        later.readings[name].parts.get(part, -math.inf) < value
        for name in shared
        for part, value in earlier.readings[name].parts.items()
    )


def _grown(before: Reading, after: Reading) -> Reading:
    count = None if before.count is None or after.count is None else after.count - before.count
    edges = tuple(edge for edge, _ in before.buckets) == tuple(edge for edge, _ in after.buckets)
    pairs = zip(before.buckets, after.buckets, strict=True) if edges else ()
    buckets = tuple((edge, late - early) for (edge, early), (_, late) in pairs)
    return Reading(after.value - before.value, count, buckets)


def percentile(buckets: Buckets, share: float) -> Bound | None:
    """The bucket that holds the observation at this share of all, the lowest being the first.

    Raises:
        ValueError: the share is not between 0 and 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"{share} is no share between 0 and 1")
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    rank, below = math.ceil(share * total), 0.0
    for edge, observations in buckets:
        if observations >= rank:
            return Bound(below, None if math.isinf(edge) else edge)
        below = edge
    return None
