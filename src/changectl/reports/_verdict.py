"""A verdict as people read it: its reasons in sentences, its figures in a table."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.history.events import text_of
from changectl.core.ports import Json
from changectl.reports import _figures as figures
from changectl.reports import _trial as trial
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Heading, Table
from changectl.reports._commands import told

_HEADINGS = ("metric", "before", "after", "change", "result")


def reasons(found: Sequence[Json], rows: Sequence[Json]) -> list[Block]:
    """Why, one sentence each; nothing where no reason is recorded."""
    lines = [block for text in figures.reasons(found, rows) for block in told(text, mark="- ")]
    return [Heading("reasons", 3), *lines] if lines else []


def table(rows: Sequence[Json]) -> list[Block]:
    """Every figure before and after; the instance is named where there are several."""
    if not rows:
        return []
    several = len({text_of(row, "host") for row in rows}) > 1
    cells = [
        [
            *([text_of(row, "host")] if several else []),
            words.place(row),
            words.figure(row, "before"),
            words.figure(row, "after"),
            ": ".join(part for part in (words.change(row), trial.bounds(row)) if part),
            figures.result(row),
        ]
        for row in rows
    ]
    return [Heading("before and after", 3), Table(("host", *_HEADINGS) if several else _HEADINGS, cells)]
