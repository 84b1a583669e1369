"""Where the time went, before and after a change: the phases' activities side by side, and what stands out.

The figures of several phases of one configuration become one: means are averaged, peaks are the highest, counts add up.
What one phase lacks is missing for all of them: an average over some would compare unlike things. A phase that failed
counts only where its configuration has no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from changectl.core.history.events import mapping_of, number_of, text_of
from changectl.core.history.time_said import REST, STAGES, WHOLE, Side, TimeRow, said
from changectl.core.ports import Json
from changectl.core.telemetry.engine_series import BY_NAME
from changectl.core.telemetry.host_figures import COUNTS, FIGURES
from changectl.core.telemetry.host_window import NOT_READ

LEAST = ("memory_available",)  # figures of which the lowest value matters
MEANINGS: Mapping[str, str] = {
    WHOLE: "from sending a request to the end of its answer, as the client saw it, the warm-up included",
    REST: "of that, what the engine's own stages do not explain: a queue, the network, whatever it does not expose",
    "cache_hit": "share of input tokens that were found in the engine's cache",
    "retransmit_share": "share of the TCP segments that were sent again",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of one phase. `adds`: of several phases it is the sum, being a count."""

    unit: str
    group: str
    side: Side
    adds: bool = False


Figures = Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """One instance: its figures, and the biggest change in plain words; "": the evidence allows no such sentence."""

    host: str
    rows: tuple[TimeRow, ...]
    said: str

    def row(self, name: str) -> TimeRow:
        """The figure of that name. Raises StopIteration: there is none."""
        return next(row for row in self.rows if row.name == name)

    def to_json(self) -> dict[str, Any]:
        """For `show --json`."""
        return {"host": self.host, "said": self.said or None, "figures": [asdict(row) for row in self.rows]}


def time_spent(measurements: Sequence[Json]) -> list[TimeSpent]:
    """One comparison for each instance of a step.

    Args:
        measurements: bodies of `measure.outcome`; those without an activity (of an older program) are left out.
    """
    known = [body for body in measurements if mapping_of(body, "activity")]
    return [_of_host(host, [body for body in known if text_of(body, "host") == host])
            for host in dict.fromkeys(text_of(body, "host") for body in known)]  # fmt: skip


def _of_host(host: str, bodies: Sequence[Json]) -> TimeSpent:
    before, after = ([_figures(mapping_of(body, "activity")) for body in _sound(bodies, letter)] for letter in "AB")
    first = (before or after)[0] if before or after else {}
    rows = tuple(
        TimeRow(name, figure.unit, figure.group, _together(before, name), _together(after, name))
        for name, figure in first.items()
    )
    return TimeSpent(host, rows, said(rows, _means(before), _means(after)))


def _sound(bodies: Sequence[Json], letter: str) -> list[Json]:
    """The phases of one configuration; of those that failed only where there is no other."""
    own = [body for body in bodies if text_of(body, "phase") == letter]
    whole = [body for body in own if body.get("ok") is not False and not mapping_of(body, "summary").get("invalid")]
    return whole or own


def _means(phases: Sequence[Figures]) -> list[dict[str, float | None]]:
    return [{name: figure.side.mean for name, figure in phase.items()} for phase in phases]


def _figures(activity: Json) -> dict[str, Figure]:
    engine, host = mapping_of(activity, "engine"), mapping_of(activity, "host")
    found = {name: Figure("s", "engine", side) for name, side in _stages(engine, mapping_of(activity, "client"))}
    for name in ("running", "waiting", "kv_use"):
        found[name] = Figure(BY_NAME[name].unit, "engine", _spread(engine, "gauges", name))
    found["preemptions"] = Figure("times", "engine", _count(engine, "preemptions"), adds=True)
    found["cache_hit"] = Figure("share", "engine", _ratio(engine, "cache_hits", "cache_queries"))
    for name, row in FIGURES.items():
        found[name] = Figure(row.unit, "host", _spread(host, "spreads", name))
    for name, row in COUNTS.items():
        found[name] = Figure(row.unit, "host", _counted(host, name), adds=True)
    found["retransmit_share"] = Figure("share", "host", _share_of(host, "retransmits", "segments"))
    return found


def _stages(engine: Json, client: Json) -> Iterator[tuple[str, Side]]:
    """Seconds for each request: as the client saw it, the engine's stages, and what they leave unexplained."""
    requests, seconds = number_of(client, "requests"), number_of(client, "seconds")
    whole = seconds / requests if requests and seconds is not None else None
    yield WHOLE, Side(whole, missing="" if whole is not None else "no good answer")
    stages = {name: _per_request(engine, name, requests) for name in STAGES}
    yield from stages.items()
    known = [side.mean for side in stages.values() if side.mean is not None]
    rest = None if whole is None or not known else whole - math.fsum(known)
    why = (
        "no stage is known" if not known else "the stages are longer than the whole: they are not of the same requests"
    )
    yield REST, Side(rest) if rest is not None and rest >= 0 else Side(missing=why)


def _per_request(engine: Json, name: str, requests: float | None) -> Side:
    gain = mapping_of(mapping_of(engine, "gains"), name)
    seconds, count = number_of(gain, "value"), number_of(gain, "count")
    count = requests if count is None else count
    if seconds is None:
        return Side(missing=_why(engine, name))
    return Side(seconds / count) if count else Side(missing="no request ended")


def _spread(body: Json, part: str, name: str) -> Side:
    found = mapping_of(mapping_of(body, part), name)
    if not found:
        return Side(missing=_why(body, name))
    extreme = "least" if name in LEAST else "most"
    return Side(number_of(found, "mean"), number_of(found, extreme), text_of(found, "of"))


def _count(engine: Json, name: str) -> Side:
    value = number_of(mapping_of(mapping_of(engine, "gains"), name), "value")
    return Side(value) if value is not None else Side(missing=_why(engine, name))


def _counted(host: Json, name: str) -> Side:
    value = number_of(mapping_of(host, "counts"), name)
    return Side(value) if value is not None else Side(missing=_why(host, name))


def _ratio(engine: Json, part: str, whole: str) -> Side:
    one, every = (_count(engine, name) for name in (part, whole))
    if one.mean is None or every.mean is None:
        return Side(missing=one.missing or every.missing)
    return Side(one.mean / every.mean) if 0 < every.mean >= one.mean else Side(missing="nothing was looked for")


def _share_of(host: Json, part: str, whole: str) -> Side:
    one, every = (_counted(host, name) for name in (part, whole))
    if one.mean is None or every.mean is None:
        return Side(missing=one.missing or every.missing)
    return Side(one.mean / every.mean) if every.mean else Side(missing="nothing was sent")


def _why(body: Json, name: str) -> str:
    return text_of(mapping_of(body, "missing"), name) or NOT_READ


def _together(phases: Sequence[Figures], name: str) -> Side | None:
    """The figure of several phases; missing where one lacks it."""
    figures = [phase[name] for phase in phases]
    if not figures:
        return None
    sides = [figure.side for figure in figures]
    if lacking := next((side for side in sides if side.missing), None):
        return Side(missing=lacking.missing)
    means = [side.mean for side in sides if side.mean is not None]
    extremes = [side.most for side in sides if side.most is not None]
    extreme = min if name in LEAST else max
    mean = math.fsum(means) / (1 if figures[0].adds else len(means)) if means else None
    names = ", ".join(dict.fromkeys(side.of for side in sides if side.of))
    return Side(mean, extreme(extremes) if extremes else None, names)
