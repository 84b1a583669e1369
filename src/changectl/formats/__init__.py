"""Configuration formats: bytes in, values or new bytes out. A value is found and edited in place, never re-serialised.

Members are listed from this folder and loaded when first used. Every edit is parsed again and counts only if exactly
the wanted value differs.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from typing import Protocol, cast

from changectl.core.errors import EditRefused, InputError
from changectl.core.settings import Carrier, Key, Reading, Value
from changectl.formats._quoting import check_value
from changectl.formats._text import EMPTY_MAP, Settings, ValueElsewhere, is_unicode, refuse
from changectl.formats._unit import (
    Assignment,
    EnvironmentFile,
    Variable,
    effective_file,
    environment_files,
    unit_environment,
    unit_lines,
)

__all__ = [
    "Assignment",
    "EnvironmentFile",
    "Format",
    "Settings",
    "ValueElsewhere",
    "Variable",
    "edit",
    "effective_file",
    "environment_files",
    "load",
    "names",
    "read",
    "settings",
    "unit_environment",
    "unit_lines",
]


class Format(Protocol):
    """What one member offers; all three are pure and raise EditRefused where the answer is not certain."""

    def read(self, data: bytes, carrier: Carrier, key: Key) -> Reading:
        """All occurrences of a key."""

    def edit(self, data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
        """The bytes with the effective occurrence changed; not yet checked."""

    def settings(self, data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
        """Everything in the carrier (`whole`: in the file) as name to values."""


@functools.cache
def names() -> tuple[str, ...]:
    """The known formats, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_")))


def load(name: str) -> Format:
    """A format by name. Raises InputError, naming the known ones, for any other."""
    if name not in names():
        raise InputError(f"unknown format {name!r}; known: {', '.join(names())}")
    return cast(Format, importlib.import_module(f"{__name__}.{name}"))


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """All occurrences of a key in a carrier, and the effective one.

    Raises:
        EditRefused: the file cannot be understood, or the answer is ambiguous; with line and reason.
        ValueElsewhere: the value stands in a variable, which is named.
    """
    return _read(load(carrier.format), data, carrier, key)


def settings(data: bytes, carrier: Carrier) -> Settings:
    """Everything that stands in a carrier: name to values, in file order.

    Options have normalised names ("--max-num-seqs"), positional words are called "#0", "#1", ...

    Raises:
        EditRefused: the file cannot be understood.
    """
    return load(carrier.format).settings(data, carrier)


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file's bytes with one value replaced, inserted or (to=None) removed, everything else untouched.

    Args:
        data: the file as it is.
        carrier: where in it the key lives.
        key: what to change; its effective (last) occurrence is edited.
        to: the new value; the present one gives back the same bytes.

    Raises:
        EditRefused: the edit is not certain: with the reason, and the line where there is one.
        ValueElsewhere: the value stands in a variable, which is named.
    """
    member = load(carrier.format)
    present = _read(member, data, carrier, key)
    if _already(present, key, to):
        return data
    if to is not None:
        check_value(to)
    lines = ", ".join(str(occurrence.line) for occurrence in present.occurrences)
    if len(present.occurrences) > 1 and key.repeatable:
        refuse(f"{key.names[0]} stands there several times and every one counts (lines {lines})")
    if len(present.occurrences) > 1 and to is None:
        refuse(f"{key.names[0]} stands there several times (lines {lines}): removing one would uncover another")
    edited = member.edit(data, carrier, key, to)
    _check(member, data, edited, carrier, key, to)
    return edited


def _read(member: Format, data: bytes, carrier: Carrier, key: Key) -> Reading:
    reading = member.read(data, carrier, key)
    for occurrence in reading.occurrences:
        if not is_unicode(occurrence.value):
            refuse(f"the value of {key.names[0]} is not UTF-8", occurrence.line)
    return reading


def _already(present: Reading, key: Key, to: Value) -> bool:
    # A switch without a negation is off when it is absent; there is no other way to write that.
    off = to == "false" and key.type == "bool" and key.negation is None and present.value is None
    return present.value == to or (off and any(name.startswith("-") for name in key.names))


def _check(member: Format, data: bytes, edited: bytes, carrier: Carrier, key: Key, to: Value) -> None:
    """Parse the result strictly: the wanted value stands there, and exactly one value differs."""
    try:
        now = _read(member, edited, carrier, key)
        before = member.settings(data, carrier, key, whole=True)
        after = member.settings(edited, carrier, key, whole=True)
    except EditRefused as error:
        raise EditRefused(f"{to!r} cannot be written there: the result would not be understood ({error})") from error
    names_there = {name for name in before.keys() | after.keys() if not name.endswith(EMPTY_MAP)}
    changed = sorted(name for name in names_there if before.get(name) != after.get(name))
    if not _already(now, key, to):
        refuse(f"{to!r} cannot be written there: it would be read as {now.value!r}")
    if len(changed) != 1:
        refuse(f"the edit would change {len(changed)} values instead of one: {', '.join(changed[:5])}")
