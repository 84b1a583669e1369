"""Recorded values in words, shared by the reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from changectl.core.history.events import number_of, text_of
from changectl.core.history.reading import OPEN, RunSummary
from changectl.core.units import format_duration, format_moved, format_value
from changectl.reports._blocks import Tone

UNKNOWN = "not known"
_LONG = 120.0  # seconds, from which on nobody counts in seconds
_GOOD = {"kept", "improved", "no_gross_harm", "unchanged", "within", "clear", "gain", "passed", "done"}
_BAD = {"revert_failed", "revert_unverified", "regressed", "breach", "failed"}


def tone(word: str) -> Tone:
    """How an outcome, a verdict or a state is shown."""
    return "good" if word in _GOOD else "bad" if word in _BAD else "warning"


def moment(at: str | None) -> str:
    """A recorded time for people: to the second, in UTC."""
    return UNKNOWN if at is None else f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M:%S} UTC"


def minute(at: str) -> str:
    """A recorded time for narrow columns, in UTC."""
    return f"{datetime.fromisoformat(at):%Y-%m-%d %H:%M}"


def seconds(value: float | None) -> str:
    """A duration to the tenth of a second, from two minutes on to the second (`2m58s`), or that it is not known."""
    if value is None:
        return UNKNOWN
    return format_duration(round(value, 1)) if round(value, 1) < _LONG else _clock(round(value))


def _clock(whole: int) -> str:
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m{rest:02d}s" if hours else f"{minutes}m{rest:02d}s"


def outcome(run: RunSummary) -> str:
    """A run's outcome, with what changed it later."""
    end = "cut off: its end is not recorded" if run.settled_by and run.outcome == OPEN else run.outcome
    if run.settled_by:
        how = "reverted" if run.reverted_by else "settled"
        return f"{end}; {how} by {run.reverted_by or run.settled_by}"
    if run.outcome == OPEN:
        return "open: its end is not recorded"
    if run.needs_person:
        return f"{end}: a person is needed"
    if run.did_nothing:
        return f"{end}: there was nothing to do"
    if run.calibrates and run.outcome == "kept":
        return f"{end}: nothing was changed, the noise of its hosts is known"
    return ", ".join(part for part in (end, *later(run)) if part)


def later(run: RunSummary) -> list[str]:
    """What later runs made of a run that has its end."""
    if run.reverted_by:
        return [f"later reverted by {run.reverted_by}"]
    if run.found_back_by:
        return [f"later found taken back already by {run.found_back_by}"]
    return [f"what {run.doubted_by} left of it is not known"] if run.doubted_by else []


def figure(row: Mapping[str, Any], side: str) -> str:
    """The `before` or `after` of a verdict's row: a number in its unit, `unbounded`, `no data`."""
    value = row.get(side)
    unit = row.get("unit")
    if value == "unbounded":
        return format_value(math.inf, "")
    return format_value(number_of(row, side), unit if isinstance(unit, str) else "")


def change(row: Mapping[str, Any]) -> str:
    """How far a verdict's row moved, "" when that was not computable."""
    unit = text_of(row, "unit")
    return format_moved(number_of(row, "before"), number_of(row, "after"), number_of(row, "change"), unit)


def plain(value: Any) -> str:
    """Any recorded JSON value on one line."""
    if value is None:
        return "absent"
    if isinstance(value, Mapping):
        if {"before", "after"} <= value.keys():
            return f"{plain(value['before'])} -> {plain(value['after'])}"
        return ", ".join(f"{name}: {plain(part)}" for name, part in value.items())
    if isinstance(value, list):
        return ", ".join(plain(part) for part in value) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def promised(expect: Any, accept: Any) -> list[tuple[str, str]]:
    """What the plan expected of a step, and what it accepted, as names and values."""
    if isinstance(accept, list):
        accept = [text.removeprefix("accept ") if isinstance(text, str) else text for text in accept]
    return [(name, plain(value)) for name, value in (("expected", expect), ("accepted", accept)) if value]


def place(row: Mapping[str, Any]) -> str:
    """The metric and the level of a verdict's row: `tpot_p50 at peak`."""
    return " at ".join(part for part in (text_of(row, "metric"), text_of(row, "level")) if part)
