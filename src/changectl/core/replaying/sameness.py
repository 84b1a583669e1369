"""The first figure in which two documents are not the same, value for value and type for type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

ABSENT = "(absent)"
ADDED = ("far", "not_sent")  # figures of a level that no record has which an earlier program made
_ADDED_MARKS = ("ended", "may_end")  # what no record of an earlier program has either, and is no figure
_NOTHING = object()  # no value of JSON, so that a text which says "(absent)" is not taken for it


@dataclass(frozen=True, slots=True)
class Differs:
    """Where two documents part.

    Attributes:
        place: the way to it, with names where there are some: `levels/normal/latency/ttft_user/p50`.
        recorded: what is on record there.
        again: what was computed instead.
    """

    place: str
    recorded: Any
    again: Any

    def __str__(self) -> str:
        return f"{self.place}: recorded {_shown(self.recorded)}, computed {_shown(self.again)}"


def first_difference(recorded: Any, again: Any, place: str = "") -> Differs | None:
    """Where they part first, in the order of the recorded one; None: nowhere, to the last bit.

    Args:
        recorded: JSON values.
        again: JSON values.
        place: the way to both.
    """
    if isinstance(recorded, Mapping) and isinstance(again, Mapping):
        keys = [*recorded, *(key for key in again if key not in recorded)]
        parts = [(str(key), recorded.get(key, _NOTHING), again.get(key, _NOTHING)) for key in keys]
    elif isinstance(recorded, list) and isinstance(again, list):
        longest = range(max(len(recorded), len(again)))
        both = [(_at(recorded, index), _at(again, index)) for index in longest]
        parts = [(_name(one, index), one, other) for index, (one, other) in enumerate(both)]
    else:
        same = type(recorded) is type(again) and repr(recorded) == repr(again)  # 0.0 and -0.0 are equal
        return None if same else Differs(place, *(ABSENT if one is _NOTHING else one for one in (recorded, again)))
    found = (first_difference(one, other, f"{place}/{name}" if place else name) for name, one, other in parts)
    return next((each for each in found if each is not None), None)


def as_known_then(recorded: Sequence[Any], again: Sequence[Any]) -> tuple[list[Any], tuple[str, ...]]:
    """The levels of a phase without the figures that an earlier program did not know, and the names of these.

    Such a program knew them of no level: one that only some levels lack stays, and is a difference.

    Args:
        recorded: the levels as they are on record.
        again: the levels that were computed.
    """
    lacking = [name for name in (*ADDED, *_ADDED_MARKS) if recorded and not any(name in level for level in recorded)]
    known = [{name: value for name, value in level.items() if name not in lacking} for level in again]
    return known, tuple(name for name in lacking if name in ADDED)


def _at(values: list[Any], index: int) -> Any:
    return values[index] if index < len(values) else _NOTHING


def _name(value: Any, index: int) -> str:
    """What a list's member is called: levels have names, rows a metric and a level."""
    if isinstance(value, Mapping):
        words = [value[key] for key in ("name", "metric", "code") if isinstance(value.get(key), str)]
        level = value.get("level")
        if words:
            return f"{words[0]} at {level}" if isinstance(level, str) else words[0]
    return str(index + 1)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)
