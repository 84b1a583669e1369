"""Which change of a request's time stands out, in one plain sentence; nothing where the evidence does not carry it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from changectl.core.units import format_duration

WHOLE, REST = "request_time", "rest_time"
STAGES = ("queue_time", "preprocess_time", "prefill_time", "decode_time", "postprocess_time")

_LEAST_SHARE, _LEAST_SECONDS = 0.1, 0.001  # of a request's time before, and in absolute terms; below it nothing is said
_MOST_OF_IT = 0.5  # share of the whole change that a stage has to have
_ALL_OF_IT = 0.95
_WHERE = {
    "queue_time": "in the engine's queue",
    "preprocess_time": "in pre-processing",
    "prefill_time": "in reading the input",
    "decode_time": "in generating the output",
    "postprocess_time": "in post-processing",
    REST: "outside of the stages that the engine exposes",
}

Means = Sequence[Mapping[str, float | None]]  # of each phase of one configuration: figure -> mean


@dataclass(frozen=True, slots=True)
class Side:
    """A figure of one configuration: `mean` per request or over time, `most` (of `LEAST` the least) and `of` what."""

    mean: float | None = None
    most: float | None = None
    of: str = ""
    missing: str = ""  # why there is none


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One figure before and after; None: no phase of that configuration was measured."""

    name: str
    unit: str
    group: str  # engine or host
    before: Side | None
    after: Side | None


def said(rows: Sequence[TimeRow], before: Means, after: Means) -> str:
    """The stage that most of the change of a request's time lies in, where that is beyond doubt.

    Beyond doubt: the whole moved by a tenth and more, one stage moved in the same direction by at least half of that,
    and every phase before lies on the same side of every phase after, for the whole as for the stage.
    """
    means = {row.name: pair for row in rows if row.name in _WHERE or row.name == WHOLE if (pair := _pair(row))}
    moved = {name: late - early for name, (early, late) in means.items()}
    whole = moved.pop(WHOLE, None)
    if not whole or not moved or abs(whole) < max(_LEAST_SECONDS, _LEAST_SHARE * means[WHOLE][0]):
        return ""
    stage = max(moved, key=lambda name: moved[name] * math.copysign(1, whole))
    part = moved[stage] / whole
    if part < _MOST_OF_IT or not all(_apart(before, after, name) for name in (WHOLE, stage)):
        return ""
    early, late = (format_duration(value, 3) for value in means[stage])
    much = "All" if part >= _ALL_OF_IT else "Most"
    text = f"{much} of the change in a request's time lies {_WHERE[stage]}: {early} before, {late} after"
    return f"{text}{_queue(rows)}"


def _pair(row: TimeRow) -> tuple[float, float] | None:
    if row.before is None or row.after is None or row.before.mean is None or row.after.mean is None:
        return None
    return row.before.mean, row.after.mean


def _apart(before: Means, after: Means, name: str) -> bool:
    ones, others = ([value for phase in phases if (value := phase.get(name)) is not None] for phases in (before, after))
    return bool(ones and others) and (max(ones) < min(others) or max(others) < min(ones))


def _queue(rows: Sequence[TimeRow]) -> str:
    """How long the queue was, where the engine shows it and it was not always empty."""
    waiting = next((row for row in rows if row.name == "waiting"), None)
    if waiting is None or waiting.before is None or waiting.after is None:
        return ""
    early, late = waiting.before.most, waiting.after.most
    if early is None or late is None or not (early or late):
        return ""
    return f"; at most {early:g} requests waited in its queue before, {late:g} after"
