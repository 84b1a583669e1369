"""What was measured: how many requests at which levels, with which inputs, on which model and engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from changectl.core.history_events import mapping_of, mappings_of, text_of
from changectl.core.ports import Json
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Table

_PHASES = {"A": "before", "B": "after"}
_HEADINGS = ("phase", "host", "level", "load", "requests", "good answers", "fresh start")


def blocks(measurements: Sequence[Json], workload: str, model: str) -> list[Block]:
    """The sample sizes of every phase and level, and what was so for all of them.

    Args:
        measurements: bodies of `measure.outcome`.
        workload: its name, as the record has it; "": it has none.
        model: the model's name, likewise.
    """
    rows = [row for body in measurements for row in _rows(body)]
    facts = _facts(measurements, workload, model)
    if not rows and not facts:
        return []
    table: list[Block] = [Table(_HEADINGS, rows)] if rows else []
    return [Heading("what was measured", 3), *table, Facts(facts)]


def _rows(body: Json) -> list[list[str]]:
    loads = mapping_of(mapping_of(body, "conditions"), "levels")
    phase = text_of(body, "phase")
    return [
        [
            _PHASES.get(phase, phase),
            text_of(body, "host"),
            text_of(level, "name"),
            words.plain(loads.get(text_of(level, "name"), words.UNKNOWN)),
            words.plain(level.get("n", words.UNKNOWN)),
            words.plain(level.get("ok", words.UNKNOWN)),
            words.plain(body.get("fresh_start", words.UNKNOWN)),
        ]
        for level in mappings_of(mapping_of(body, "summary"), "levels")
    ]


def _facts(measurements: Sequence[Json], workload: str, model: str) -> list[tuple[str, str]]:
    conditions = [found for body in measurements if (found := mapping_of(body, "conditions"))]
    if not conditions:
        return []
    version = _told(conditions, "engine_version")
    return [
        ("workload", _named(workload, _told(conditions, "workload"))),
        ("length", f"{_told(conditions, 'length')} at each level, seed {_told(conditions, 'seed')}"),
        ("sent from", _told(conditions, "caller")),
        ("model", _named(model, _told(conditions, "model"))),
        ("engine", f"{_told(conditions, 'engine')}, version {version}"),
    ]


def _named(name: str, digest: str) -> str:
    return ", ".join(part for part in (name, digest if digest == words.UNKNOWN else f"sha256 {digest}") if part)


def _told(conditions: Sequence[Json], key: str) -> str:
    """A condition as recorded; where it was not the same in all phases, each value once."""
    values: dict[str, Any] = {json.dumps(each.get(key), sort_keys=True): each.get(key) for each in conditions}
    return "; ".join(words.UNKNOWN if value is None else words.plain(value) for value in values.values())
