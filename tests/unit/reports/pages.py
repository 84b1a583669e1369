"""Pages of real stories of the fake hosts, as `show --html` writes them."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from tests.workflow.stage import Stage

from changectl.core.history.reading import run_story
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.records import Record
from changectl.reports import html

# Whatever a name, a prompt or a log may hold: markup, an end of every quote, a way out of style and script, bidi.
HOSTILE = (
    '\'"></title></style></svg>--><script>window.pwned=1</script><img src=x onerror="pwned=1"> {{7*7}} ‮\x1b[31m&amp;'
)
# What is read by programs, and never free text.
_WORDS = frozenset({
    "phase", "verdict", "outcome", "kind", "blob", "samples", "metric", "unit", "state", "code", "decision", "p50",
    "p95", "p99", "mean", "at", "letter",
})  # fmt: skip


def spoiled(value: Any, key: str = "") -> Any:
    """The same with hostile text in every free text and every name of a level, wherever it stands."""
    if isinstance(value, str):
        return value if key in _WORDS else value + HOSTILE
    if isinstance(value, Mapping):
        return {name: spoiled(one, name) for name, one in value.items()}
    return [spoiled(one, key) for one in value] if isinstance(value, list) else value


def page(stage: Stage, run: str = "R1", *, alter: Callable[[Any], Any] = lambda body: body, whole: bool = True) -> str:
    """The page of a run.

    Args:
        stage: its story.
        run: the run.
        alter: what to do to the body of every event.
        whole: whether the raw records are there.
    """
    hostile = alter("") != ""
    events = [dataclasses.replace(one, body=alter(copy.deepcopy(dict(one.body)))) for one in stage.journal.events(run)]
    raw = {digest: _records(data, hostile) for digest, data in stage.records.blobs.items()} if whole else {}
    lost = [] if whole else ["raw records are missing from the drawings: evidence aa cannot be read"]
    return html.as_page(run_story(events), None, raw, lost, "0.1.0")


def _records(data: bytes, hostile: bool) -> tuple[Record, ...]:
    try:
        records = tuple(parse_records(data.decode()))
    except (ValueError, KeyError):
        return ()  # a log, or what the sampler saw
    return tuple(one._replace(level=one.level + HOSTILE) for one in records) if hostile else records
