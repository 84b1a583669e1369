"""The load generator's output: lines in, one record per request out."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

from changectl.core.records import Record

_AT_ONCE = 128  # lines that are read together: few enough to stay near the processor

_INTEGERS = ("i", "stream", "round", "t_planned", "chunks")
_OPTIONAL_INTEGERS = (
    "t_start",
    "t_sent",
    "t_headers",
    "t_first",
    "t_first_output",
    "t_last",
    "t_end",
    "n_out",
    "n_in",
    "cached",
    "max_gap_ns",
    "status",
    "turn",
)
_TEXTS = ("level", "prompt", "cls")
_OPTIONAL_TEXTS = ("finish", "error", "text_sha", "text")


def _kinds(name: str) -> frozenset[type]:
    kind = int if name in _INTEGERS or name in _OPTIONAL_INTEGERS else str
    return frozenset({kind} if name in _INTEGERS or name in _TEXTS else {kind, type(None)})


_KINDS = {name: _kinds(name) for name in Record._fields}


def parse_records(lines: Iterable[str]) -> tuple[Record, ...]:
    """All records of the generator's output, blank lines left out.

    A line `{"fields": [...]}` names what the lines after it hold, each a list of one request's values. A line that is
    any other object is a record by itself, as earlier generators wrote them.

    Raises:
        ValueError: a line that is no record; the text names the line.
    """
    reader = _Reader()
    texts = list(lines)
    records: list[Record] = []
    start = 0
    while start < len(texts):
        # A line that names fields is read by itself, and not with it all that stand near.
        end = start + 1
        while end < min(start + _AT_ONCE, len(texts)) and texts[start][:1] == texts[end][:1] == "[":
            end += 1
        some = texts[start:end]
        records += reader.together(some) or reader.one_by_one(some, start + 1)
        start = end
    return tuple(records)


class _Reader:
    """Reads lines under the last line that named their fields."""

    def __init__(self) -> None:
        self._fields: Sequence[str] = ()

    def together(self, lines: Sequence[str]) -> list[Record] | None:
        """The records of lines that are all values of requests; None: some are not, and each has to be looked at."""
        try:
            rows = json.loads(f"[{','.join(lines)}]")
            if len(rows) != len(lines) or set(map(type, rows)) != {list}:
                return None
            columns = dict(zip(self._fields, zip(*rows, strict=True), strict=True))
        except (ValueError, RecursionError):
            return None
        for name, kinds in _KINDS.items():
            found = set(map(type, columns[name])) if name in columns else {type(None)}
            if not found <= kinds:
                return None
        return list(map(Record._make, zip(*(columns.get(name) or repeat(None) for name in _KINDS), strict=False)))

    def one_by_one(self, lines: Sequence[str], first: int) -> Iterator[Record]:
        """The records of any lines; the first one has this number. Raises ValueError."""
        for number, line in enumerate(lines, start=first):
            if line.strip():
                try:
                    raw = _load(line)
                    if isinstance(raw, dict) and "fields" in raw:
                        self._fields = [str(name) for name in raw["fields"]]
                    else:
                        yield _record(raw if isinstance(raw, dict) else dict(zip(self._fields, raw, strict=True)))
                except (ValueError, TypeError) as error:
                    raise ValueError(f"line {number}: {error}") from error


def _load(line: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"a request record is not whole: {error}") from error


def _record(raw: Mapping[str, Any]) -> Record:
    return Record(**{name: _field(name, raw.get(name)) for name in _KINDS})


def _field(name: str, value: Any) -> Any:
    if type(value) in _KINDS[name]:
        return value
    kinds = " or ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in _KINDS[name]))
    raise ValueError(f'field "{name}" of a request record is {value!r}, not {kinds}')
