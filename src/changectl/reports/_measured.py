"""What was measured: how many requests at which levels, with which inputs, on which model and engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from changectl.core.declared.measured_path import BALANCER
from changectl.core.history.events import mapping_of, mappings_of, number_of, text_of
from changectl.core.ports import Json
from changectl.core.units import RATE, format_duration, format_share, format_value
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Facts, Heading, Table
from changectl.reports._exactness import exactness

_PHASES = {"A": "before", "B": "after"}
_HEADINGS = ("phase", "host", "level", "load", "requests", "good answers", "fresh start")
_WHERE_KNOWN = ("failed", "under way", "goodput")  # without failures, or in a record of before they were kept


def blocks(measurements: Sequence[Json], workload: str, model: str) -> list[Block]:
    """The sample sizes of every phase and level, and what was so for all of them.

    Args:
        measurements: bodies of `measure.outcome`.
        workload: its name, as the record has it; "": it has none.
        model: the model's name, likewise.
    """
    rows = [row for body in measurements for row in _rows(body)]
    headings, rows = _without_unknown(rows)
    facts = _facts(measurements, workload, model)
    if not rows and not facts:
        return []
    table: list[Block] = [Table(headings, rows)] if rows else []
    return [Heading("what was measured", 3), *table, Facts(facts)]


def _rows(body: Json) -> list[list[str]]:
    loads = mapping_of(mapping_of(body, "conditions"), "levels")
    phase = text_of(body, "phase")
    return [
        [
            _PHASES.get(phase, phase),
            text_of(body, "host"),
            text_of(level, "name"),
            _load(level, loads.get(text_of(level, "name"))),
            words.plain(level.get("n", words.UNKNOWN)),
            words.plain(level.get("ok", words.UNKNOWN)),
            words.plain(body.get("fresh_start", words.UNKNOWN)),
            _failed(level),
            _under_way(level),
            _goodput(level),
        ]
        for level in mappings_of(mapping_of(body, "summary"), "levels")
    ]


def _without_unknown(rows: Sequence[list[str]]) -> tuple[list[str], list[list[str]]]:
    """The table without those last columns that no row has anything in."""
    headings = [*_HEADINGS, *_WHERE_KNOWN]
    known = [place for place in range(len(headings)) if place < len(_HEADINGS) or any(row[place] for row in rows)]
    return [headings[place] for place in known], [[row[place] for place in known] for row in rows]


def _load(level: Json, asked: Any) -> str:
    """What was asked for; of an open level what was really sent, of one that ended being precise when that was."""
    load = words.UNKNOWN if asked is None else words.plain(asked)
    ended = number_of(level, "ended")
    if ended is not None:
        return f"{load}, precise after {format_duration(ended)}"
    sent = number_of(level, "sent_rate")
    return load if sent is None else f"{load}, open: {format_value(sent, RATE)} sent"


def _failed(level: Json) -> str:
    """What became of the requests that failed: `12 http_4xx, 1 timeout`; "" where none did."""
    kinds = {kind: int(number or 0) for kind, number in mapping_of(level, "failures").items()}
    by_number = sorted(kinds.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{number} {kind}" for kind, number in by_number if number)


def _under_way(level: Json) -> str:
    """Requests under way over time, and at most; "" where that was not recorded."""
    mean, most = number_of(level, "in_flight_mean"), number_of(level, "in_flight_most")
    if most is None:
        return ""
    return f"at most {most:g}" if mean is None else f"{mean:.3g}, at most {most:g}"


def _goodput(level: Json) -> str:
    """The share of requests within the service's limits; "" where none is about a latency, or nobody can say."""
    share = number_of(level, "goodput")
    return "" if share is None else format_share(share)


def _facts(measurements: Sequence[Json], workload: str, model: str) -> list[tuple[str, str]]:
    conditions = [found for body in measurements if (found := mapping_of(body, "conditions"))]
    if not conditions:
        return []
    version = _told(conditions, "engine_version")
    sent = [
        ("workload", _named(workload, _told(conditions, "workload"))),
        ("length", f"{_told(conditions, 'length')} at each level, seed {_told(conditions, 'seed')}"),
        ("sent from", _told(conditions, "caller")),
        *exactness(measurements),
    ]
    if any(each.get("path") == BALANCER for each in conditions):
        sent.append(("sent to", f"{_told(conditions, 'endpoint')}, through the balancer"))
    observed = not any("workload" in each for each in conditions)  # then users sent the load
    return [
        *([] if observed else sent),
        ("model", _named(model, _told(conditions, "model"))),
        ("engine", f"{_told(conditions, 'engine')}, version {version}"),
    ]


def _named(name: str, digest: str) -> str:
    return ", ".join(part for part in (name, digest if digest == words.UNKNOWN else f"sha256 {digest}") if part)


def _told(conditions: Sequence[Json], key: str) -> str:
    """A condition as recorded; where it was not the same in all phases, each value once."""
    values: dict[str, Any] = {json.dumps(each.get(key), sort_keys=True): each.get(key) for each in conditions}
    return "; ".join(words.UNKNOWN if value is None else words.plain(value) for value in values.values())
