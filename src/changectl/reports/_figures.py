"""A verdict's rows and reasons in words. The record keeps the judge's terse wording; people read this one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from changectl.core.history.events import text_of
from changectl.core.ports import Json
from changectl.reports import _words as words

# What a limit was recorded as, and how it reads. Whatever is recorded otherwise is shown as it is.
_LIMITS = (
    (r"less than ([\d.]+) times, or up to (\S+) more", r"below \1 times the old value, or at most \2 above it"),
    (r"less than ([\d.]+) times lower", r"not \1 times lower than before"),
    (
        r"less than (\S+) points more, or p at least (\S+)",
        r"under \1 points more, or no more than chance explains: p of \2 or above",
    ),
    (r"accept (.+)", r"\1, accepted by the plan"),
    (r"slo (.+)", r"\1, the service's limit"),
)


_STATES = {
    "breach": "beyond the limit",
    "within": "within the limit",
    "clear": "shown to be within the limit",
    "open": "not decided",
    "gain": "the gain is there",
    "flat": "the gain is not there",
}


def limit(text: str) -> str:
    """The rule that a figure was held against, as a person would say it."""
    for pattern, reading in _LIMITS:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, reading, text)
    return text


def spoken(text: str) -> str:
    """A sentence of the judge's, as it is told while a run goes on, in the words of the final screen."""
    for pattern, reading in _LIMITS:
        within = pattern.replace("(.+)", r"([^,]+)")
        text = re.sub(rf", {within}, breach\b", f", beyond the limit ({reading})", text)
    return text


def result(row: Mapping[str, Any], *, brief: bool = False) -> str:
    """What came of a figure: against which limit, and why where that alone does not say it.

    Args:
        row: one of a verdict's.
        brief: leave the limit out where it was kept.
    """
    recorded = text_of(row, "state")
    state = _STATES.get(recorded, recorded)
    against = "" if brief and recorded == "within" else limit(text_of(row, "limit"))
    return ": ".join(part for part in (f"{state} ({against})" if against else state, text_of(row, "note")) if part)


def reasons(reasons: Sequence[Json], rows: Sequence[Json]) -> list[str]:
    """The reasons of a verdict, one sentence each; those that repeat a row, or count rows, are told from the rows."""
    return [_reason(reason, rows) for reason in reasons]


def unsaid(text: str, reasons: Sequence[Json]) -> list[str]:
    """The lines of a step's text that its verdict's reasons do not say already."""
    hosts = dict.fromkeys(text_of(reason, "host") for reason in reasons)
    said = {"; ".join(text_of(one, "text") for one in reasons if text_of(one, "host") == host) for host in hosts}
    return [line for line in text.splitlines() if line not in said]


def _reason(reason: Json, rows: Sequence[Json]) -> str:
    code, text = text_of(reason, "code"), text_of(reason, "text")
    own = [row for row in rows if text_of(row, "host") == text_of(reason, "host")]
    if code == "no_gross_harm":
        return _counted(own) or text
    row = next((row for row in own if text.startswith(f"{words.place(row)}: ")), None)
    if row is None or code not in ("limit_breached", "quality", "no_evidence"):
        return text or code
    moved = words.change(row)
    figures = f"{words.figure(row, 'before')} -> {words.figure(row, 'after')}" + (f" ({moved})" if moved else "")
    return f"{words.place(row)}: {figures}, {result(row)}"


def _counted(rows: Sequence[Json]) -> str:
    """How many of the guarded figures are within their limits; "" where the rows do not say it."""
    guarded = [row for row in rows if text_of(row, "state") != "not judged"]
    within = sum(text_of(row, "state") == "within" for row in guarded)
    if not within:
        return ""
    left = len(guarded) - within
    told = "1 figure is within its limit" if within == 1 else f"{within} figures are within their limits"
    return told + (f"; {left} could not be judged" if left else "")
