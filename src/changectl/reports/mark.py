"""What an operator made of a verdict, as it was recorded."""

from __future__ import annotations

from typing import Any

from changectl.core.history.events import text_of
from changectl.core.ports import Event
from changectl.core.replaying.ledger import RIGHT, Entry
from changectl.reports._blocks import Block, Command, Line
from changectl.reports._runs import FORMAT

_MEANS = {
    ("keep", True): "keeping it was right",
    ("keep", False): "it does harm: that was missed",
    ("revert", True): "taking it back was right",
    ("revert", False): "it did no harm: a false revert",
}


def as_json(entry: Entry, event: Event) -> dict[str, Any]:
    """The document of `changectl mark RUN right|wrong --json`."""
    body = event.body
    return {
        "format": FORMAT,
        "run": entry.run,
        "step": entry.step,
        "verdict": entry.verdict,
        "said": entry.said,
        "right": body["opinion"] == RIGHT,
        "why": text_of(body, "why"),
        "actor": text_of(body, "actor"),
        "at": event.at,
    }


def as_blocks(entry: Entry, event: Event) -> list[Block]:
    """What people read."""
    right = event.body["opinion"] == RIGHT
    text = f"recorded for {entry.name} ({entry.verdict}): {_MEANS[entry.said, right]}"
    return [Line(text, "good" if right else "warning"), Command("changectl ledger", "how often verdicts were wrong")]
