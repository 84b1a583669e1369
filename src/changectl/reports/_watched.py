"""What was seen of a change while it was watched live, as sentences; bodies are those of `watch.outcome`."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.counting import counted
from changectl.core.history.events import number_of, text_of, texts_of
from changectl.core.ports import Json
from changectl.core.units import format_duration
from changectl.reports._blocks import Block, Line
from changectl.reports._commands import told

_MB = 1e6


def watched(bodies: Sequence[Json]) -> list[Block]:
    """One line for each instance, and one for what nobody could see there."""
    blocks: list[Block] = []
    for body in bodies:
        blocks += told(_sentence(body), "good" if body.get("ok") else "bad")
        if blind := "; ".join(texts_of(body, "not_watched")):
            blocks.append(Line(f"not watched on {text_of(body, 'host')}: {blind}", "warning"))
    return blocks


def _sentence(body: Json) -> str:
    whole, done = number_of(body, "seconds"), number_of(body, "watched_seconds")
    of = format_duration(whole) if whole is not None else "an unknown time"
    length = of if body.get("ok") or done is None else f"{format_duration(round(done))} of {of}"
    parts = [f"{counted(round(number_of(body, 'answers') or 0), 'answer')} to its own requests"]
    if (lost := number_of(body, "lost_answers")) is not None and lost:
        parts.append(f"{lost:.0f} without an answer")
    if (requests := number_of(body, "requests")) is not None:
        parts.append(f"{requests:.0f} live requests, {number_of(body, 'failed') or 0:.0f} failed")
    if (memory := number_of(body, "memory_bytes")) is not None:
        parts.append(f"{memory / _MB:.0f} MB held")
    return f"watched live on {text_of(body, 'host')} for {length}: {', '.join(parts)}"
