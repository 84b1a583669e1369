"""How busy a host and its service were between the first and the last of several looks (the host call `sample`).

Rates come from neighbouring looks by the host's own clock. What a look does not hold is missing, never zero; a counter
that fell, as after a reboot, says nothing for that pair of looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from changectl.core.telemetry.host_figures import COUNTS, FIGURES

Json = Mapping[str, Any]
Pair = tuple[Json, Json]

PAGE_BYTES = 4096  # the kernel counts swapped pages; larger ones are rare
NOT_READ = "not read"


@dataclass(frozen=True, slots=True)
class Spread:
    """One figure over time. `of`: which core, thread or GPU it is about."""

    mean: float
    most: float
    least: float
    of: str = ""


@dataclass(frozen=True, slots=True)
class HostWindow:
    """The figures of `FIGURES` and `COUNTS` that could be read, and why the others could not."""

    seconds: float = 0.0
    looks: int = 0
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    counts: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The record."""
        return {
            "seconds": self.seconds,
            "looks": self.looks,
            "spreads": {name: asdict(spread) for name, spread in self.spreads.items()},
            "counts": dict(self.counts),
            "missing": dict(self.missing),
        }


def host_window(
    looks: Sequence[Json], missing: Mapping[str, str] | None = None, threads: Mapping[str, str] | None = None
) -> HostWindow:
    """Sum up looks.

    Args:
        looks: in order of time, as the host call `sample` gives them.
        missing: part of a look -> why the host could not read it.
        threads: thread -> what it calls itself.
    """
    spreads = {name: spread for name, spread in _spreads(looks, threads or {}) if spread is not None}
    counts = {name: count for name, count in _counts(looks) if count is not None}
    why = missing or {}
    known = {**FIGURES, **COUNTS}
    left = {name: why.get(row.part, NOT_READ) for name, row in known.items() if name not in {*spreads, *counts}}
    lasted = looks[-1]["clock"] - looks[0]["clock"] if looks else 0.0
    return HostWindow(lasted, len(looks), spreads, counts, left)


def spread(values: Sequence[float], of: str = "") -> Spread | None:
    """The spread of values that are equally long in force; None: there are none."""
    return Spread(math.fsum(values) / len(values), max(values), min(values), of) if values else None


def pairs_with(looks: Sequence[Json], part: str) -> Iterator[tuple[Pair, float]]:
    """Neighbouring looks that both hold the part, and the seconds between them."""
    held = [look for look in looks if look.get(part) is not None]
    for early, late in pairwise(held):
        seconds = late["clock"] - early["clock"]
        if seconds > 0:
            yield (early, late), seconds


def _spreads(looks: Sequence[Json], threads: Mapping[str, str]) -> Iterator[tuple[str, Spread | None]]:
    yield from _cores(looks)
    yield "run_queue", spread(_now(looks, "queue", "running"))
    yield "blocked", spread(_now(looks, "queue", "blocked"))
    yield from _threads(looks, threads)
    yield "throttled", _rate(looks, "throttled_us", lambda part: part * 1e-6)
    yield "service_memory", spread([float(look["rss"]) for look in looks if look.get("rss") is not None])
    yield "memory_available", spread(_now(looks, "memory", "available"))
    yield "swap_used", spread(_now(looks, "memory", "swap_used"))
    yield "swap_in", _rate(looks, "vmstat", _key("pswpin", PAGE_BYTES))
    yield "swap_out", _rate(looks, "vmstat", _key("pswpout", PAGE_BYTES))
    yield "major_faults", _rate(looks, "vmstat", _key("pgmajfault"))
    for name in ("cpu", "memory", "io"):
        yield f"psi_{name}", _rate(looks, "pressure", _key(name, 1e-6))
    yield "disk_read", _rate(looks, "disks", _key("read_bytes"))
    yield "disk_write", _rate(looks, "disks", _key("write_bytes"))
    yield "disk_wait", _disk_wait(looks)
    yield "network_in", _rate(looks, "network", _key("bytes_in"))
    yield "network_out", _rate(looks, "network", _key("bytes_out"))
    yield from _gpus(looks)


def _counts(looks: Sequence[Json]) -> Iterator[tuple[str, float | None]]:
    yield "network_errors", _grown(looks, "network", "errors")
    yield "network_dropped", _grown(looks, "network", "dropped")
    yield "segments", _grown(looks, "tcp", "sent")
    yield "retransmits", _grown(looks, "tcp", "retransmitted")
    yield "listen_overflows", _grown(looks, "tcp", "overflows")
    yield "oom_kills", _grown(looks, "vmstat", "oom_kill")
    yield "service_oom_kills", _grown(looks, "memory_events", "oom_kill")
    seen = [tuple(look["process"]) for look in looks if look.get("process") is not None]
    others = sum(1 for early, late in pairwise(seen) if early != late)
    yield "restarts", float(others) if seen else None


def _key(name: str, factor: float = 1.0) -> Callable[[Any], float | None]:
    return lambda part: part[name] * factor if name in part else None


def _now(looks: Sequence[Json], part: str, name: str) -> list[float]:
    return [float(look[part][name]) for look in looks if name in (look.get(part) or {})]


def _rate(looks: Sequence[Json], part: str, value: Callable[[Any], float | None]) -> Spread | None:
    """Growth per second. The mean is over all time, however long each pair of looks took."""
    grown, lasted, rates = 0.0, 0.0, []
    for (early, late), seconds in pairs_with(looks, part):
        before, after = value(early[part]), value(late[part])
        if before is None or after is None or after < before:
            continue
        grown, lasted = grown + after - before, lasted + seconds
        rates.append((after - before) / seconds)
    return Spread(grown / lasted, max(rates), min(rates)) if rates else None


def _grown(looks: Sequence[Json], part: str, name: str) -> float | None:
    """By how much a counter grew in all; one that began anew counts from zero."""
    values = _now(looks, part, name)
    steps = pairwise(values)
    return math.fsum(late - early if late >= early else late for early, late in steps) if values else None


def _cores(looks: Sequence[Json]) -> Iterator[tuple[str, Spread | None]]:
    """Shares of the cores' time, by their ticks; a core that came or went leaves its pair of looks out."""
    every: dict[str, list[float]] = {"cpu": [], "iowait": [], "steal": []}
    each: dict[int, list[float]] = {}
    for (early, late), _ in pairs_with(looks, "cores"):
        before, after = early["cores"], late["cores"]
        if len(before) != len(after):
            continue
        moved = [[now - was for was, now in zip(*core, strict=True)] for core in zip(before, after, strict=True)]
        whole = sum(core[3] for core in moved)
        if whole <= 0 or any(tick < 0 for core in moved for tick in core):
            continue
        for place, name in enumerate(every):
            every[name].append(sum(core[place] for core in moved) / whole)
        for number, core in enumerate(moved):
            if core[3]:
                each.setdefault(number, []).append(core[0] / core[3])
    for name, shares in every.items():
        yield name, spread(shares)
    yield "busiest_core", _highest({f"core {number}": shares for number, shares in each.items()})


def _threads(looks: Sequence[Json], names: Mapping[str, str]) -> Iterator[tuple[str, Spread | None]]:
    """Shares of a core. A thread that came or went in between is left out of that pair."""
    used: dict[str, list[float]] = {}
    waited: dict[str, list[float]] = {}
    together: list[float] = []
    for (early, late), seconds in pairs_with(looks, "threads"):
        total = 0.0
        for thread, (busy, waits) in late["threads"].items():
            was = early["threads"].get(thread)
            if was is None or busy < was[0]:
                continue
            share = (busy - was[0]) * 1e-9 / seconds
            total += share
            used.setdefault(thread, []).append(share)
            if waits >= was[1] >= 0:
                waited.setdefault(thread, []).append((waits - was[1]) * 1e-9 / seconds)
        together.append(total)
    yield "service_cpu", spread(together)
    yield "busiest_thread", _highest(used, names)
    yield "run_delay", _highest(waited, names)


def _highest(of: Mapping[str, Sequence[float]], names: Mapping[str, str] | None = None) -> Spread | None:
    """The spread of the one with the highest sum: one that was there for a moment only does not count as busy."""
    if not of:
        return None
    which = max(of, key=lambda key: math.fsum(of[key]))
    return spread(of[which], (names or {}).get(which, which))


def _disk_wait(looks: Sequence[Json]) -> Spread | None:
    """Seconds for each read or write; only where there was one. The mean is over all of them."""
    waited, done, means = 0.0, 0.0, []
    for (early, late), _ in pairs_with(looks, "disks"):
        moved = {key: late["disks"][key] - early["disks"][key] for key in late["disks"] if key in early["disks"]}
        number = moved.get("reads", 0) + moved.get("writes", 0)
        time = (moved.get("read_ms", 0) + moved.get("write_ms", 0)) * 1e-3
        if number > 0 and time >= 0:
            waited, done = waited + time, done + number
            means.append(time / number)
    return Spread(waited / done, max(means), min(means)) if means else None


def _gpus(looks: Sequence[Json]) -> Iterator[tuple[str, Spread | None]]:
    keys = {"gpu_use": ("utilisation_gpu", 0.01), "gpu_memory": ("memory_used", 1.0),
            "gpu_power": ("power_milliwatts", 1e-3), "gpu_temperature": ("temperature", 1.0)}  # fmt: skip
    for name, (key, factor) in keys.items():
        each: dict[str, list[float]] = {}
        for look in looks:
            for gpu in look.get("gpus") or []:
                value = gpu.get(key)
                # Drivers say "not available" as the largest number there is.
                if isinstance(value, int | float) and not (name == "gpu_use" and value > 100):
                    each.setdefault(f"GPU {gpu.get('index')}", []).append(value * factor)
        yield name, _highest(each)
