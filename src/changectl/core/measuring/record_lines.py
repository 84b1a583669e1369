"""The load generator's output: lines in, the records of all requests out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args, get_type_hints

from pydantic_core import from_json

from changectl.core.measuring.records import EXACT, NUMBERS, Record, Records, figures

_AT_ONCE = 32_768  # characters that are read together, more or less: few enough to stay near the processor

_KINDS = {name: frozenset(get_args(kind) or [kind]) for name, kind in get_type_hints(Record).items()}
_SINGLE = frozenset({int, float, str, bool, type(None)})  # what a field of a later version may be


def parse_records(text: str) -> Records:
    """All records of the generator's output, blank lines left out.

    A line `{"fields": [...]}` names what the lines after it hold, each a list of one request's values. A line that is
    any other object is a record by itself, as earlier generators wrote them.

    Raises:
        ValueError: a line that is no record; the text names the line.
    """
    reader = _Reader()
    for lines in _blocks(text):
        reader.read(lines)
    return reader.records()


def _blocks(text: str) -> Iterator[str]:
    """Some whole lines at a time; one that begins an object, such as that of the fields' names, by itself."""
    start = 0
    while start < len(text):
        end = _place(text, "\n", start if text[start] == "{" else start + _AT_ONCE, len(text))
        end = _place(text, "\n{", start, end)
        yield text[start:end]
        start = end + 1


def _place(text: str, part: str, start: int, end: int) -> int:
    found = text.find(part, start, end)
    return end if found < 0 else found


class _Reader:
    """Reads lines under the last line that named their fields."""

    def __init__(self) -> None:
        self._fields: Sequence[str] = ()
        self._lines = 0
        self._columns: dict[str, list[Any]] = {name: [] for name in _KINDS}
        self._single: list[Record] = []  # read one by one, and not in the columns yet

    def read(self, lines: str) -> None:
        """Read some more. Raises ValueError for the first one that is no record."""
        try:
            columns = self._together(lines)
        except (ValueError, TypeError):  # the latter where text is no Unicode (half a surrogate pair)
            self._one_by_one(lines)
        else:
            self._settle()
            self._take(columns)
            self._lines += lines.count("\n") + 1

    def records(self) -> Records:
        """All that were read."""
        import numpy as np  # a tenth of a second to import, and not needed by most commands

        self._settle()
        none = figures(())
        return Records({
            name: np.concatenate([none, *parts]) if name in NUMBERS else parts for name, parts in self._columns.items()
        })  # fmt: skip

    def _together(self, lines: str) -> dict[str, Any]:
        """The columns of lines that all are values of requests. Raises ValueError or TypeError where some are not.

        Lines that all begin and end with a bracket, and are as many as the rows in them, which have no bracket inside:
        so every line is one row, and has been read as it would be by itself.
        """
        parts = lines.split("]\n[")
        if lines[:1] != "[" or lines[-1:] != "]" or lines.count("\n") != len(parts) - 1:
            raise ValueError("a line is no list")
        rows = from_json("[" + "],\n[".join(parts) + "]")
        if len(rows) != len(parts) or set(map(type, rows)) != {list}:
            raise ValueError("a line is not one list")
        columns: dict[str, Any] = dict(zip(self._fields, zip(*rows, strict=True), strict=True))
        for name in _KINDS:
            columns.setdefault(name, (None,) * len(rows))
        if not all(_KINDS.get(name, _SINGLE).issuperset(map(type, values)) for name, values in columns.items()):
            raise ValueError("a value is of another kind")
        return {**columns, **{name: figures(columns[name]) for name in NUMBERS}}

    def _one_by_one(self, lines: str) -> None:
        for line in lines.split("\n"):
            self._lines += 1
            if line.strip():
                try:
                    raw = _load(line)
                    if isinstance(raw, dict) and "fields" in raw:
                        self._fields = [str(name) for name in raw["fields"]]
                    else:
                        values = raw if isinstance(raw, dict) else dict(zip(self._fields, raw, strict=True))
                        self._single.append(_record(values))
                except (ValueError, TypeError) as error:
                    raise ValueError(f"line {self._lines}: {error}") from error

    def _settle(self) -> None:
        if self._single:
            columns = dict(zip(Record._fields, zip(*self._single, strict=True), strict=True))
            self._take({name: figures(values) if name in NUMBERS else values for name, values in columns.items()})
            self._single.clear()

    def _take(self, columns: Mapping[str, Any]) -> None:
        for name, kept in self._columns.items():
            if name in NUMBERS:
                kept.append(columns[name])
            else:
                kept.extend(columns[name])


def _load(line: str) -> Any:
    try:
        return json.loads(line)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"a request record is not whole: {error}") from error


def _record(raw: Mapping[str, Any]) -> Record:
    return Record(**{name: _field(name, raw.get(name)) for name in _KINDS})


def _field(name: str, value: Any) -> Any:
    if name in NUMBERS and type(value) is int and abs(value) >= EXACT:
        raise ValueError(f'field "{name}" of a request record is not below {EXACT}')
    if type(value) in _KINDS[name]:
        return value
    kinds = " or ".join(sorted("null" if kind is type(None) else kind.__name__ for kind in _KINDS[name]))
    raise ValueError(f'field "{name}" of a request record is {value!r}, not {kinds}')
