"""Decides which words of a command line change when an option is replaced, inserted or removed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

from changectl.core.settings import Key, Value
from changectl.formats._options import (
    NEGATIVE_NUMBER,
    Found,
    OptionWord,
    end_of_options,
    find_options,
    names_of,
)
from changectl.formats._text import refuse


class Words(Protocol):
    """A command line in some file: its words, and three ways to change them, each giving the file's whole new text."""

    @property
    def words(self) -> Sequence[OptionWord]:
        """The decoded words."""

    def replace(self, index: int, keep: int, value: str) -> str:
        """The word at `index` becomes its first `keep` characters followed by `value`."""

    def insert(self, index: int, values: Sequence[str]) -> str:
        """New words stand before the word at `index` (at the end: the number of words)."""

    def remove(self, first: int, last: int) -> str:
        """The words from `first` to `last`, both included, are gone."""


def edit_option(line: Words, key: Key, to: Value) -> str:
    """The file's text in which the key has another value, stands there newly, or is gone."""
    found = find_options(line.words, key)
    if key.type == "bool" and to is not None and to not in ("true", "false"):
        refuse(f"{key.names[0]} is a switch: its value is true or false, not {to!r}")
    if not found:
        return _insert(line, key, to)
    hit = found[-1]
    if to is None:
        return line.remove(hit.first, hit.last)
    if not hit.bare:
        if hit.last > hit.first and to.startswith("-") and not NEGATIVE_NUMBER.fullmatch(to):
            refuse(f"the value {to!r} would be taken for an option after {hit.spelling}", hit.line)
        return line.replace(hit.last, hit.keep, to)
    return _switch(line, hit, key, to)


def _switch(line: Words, hit: Found, key: Key, to: str) -> str:
    """A bare switch turns over: its negation is written, or it is removed where there is none."""
    if to == "false" and key.negation is None:
        return line.remove(hit.first, hit.last)
    spelling = key.negation if to == "false" else names_of(key)[0]
    return line.replace(hit.first, 0, _like(str(spelling), hit.spelling))


def _like(name: str, model: str) -> str:
    """The name with `_` where the model uses it."""
    dashes = len(name) - len(name.lstrip("-"))
    body = model.lstrip("-")
    return name[:dashes] + name[dashes:].replace("-", "_") if "_" in body and "-" not in body else name


def _insert(line: Words, key: Key, to: Value) -> str:
    """Append the option, before a standalone `--`, in the form most long options there have."""
    values = [word.value for word in line.words]
    end = end_of_options(values)
    name = names_of(key)[0]
    if to is None or (key.type == "bool" and to == "false" and key.negation is None):
        refuse(f"{name} does not stand there")  # callers find that out before; nothing is written on a guess
    if key.type == "bool":
        return line.insert(end, [name if to == "true" else str(key.negation)])
    joined = [value for value in values[:end] if value.startswith("--") and "=" in value]
    apart = [
        value
        for value, following in pairwise(values[:end])
        if value.startswith("--") and "=" not in value and not following.startswith("-")
    ]
    dashed = to.startswith("-") and not NEGATIVE_NUMBER.fullmatch(to)
    if name.startswith("--") and (len(joined) > len(apart) or dashed):
        return line.insert(end, [f"{name}={to}"])
    if dashed:
        refuse(f"the value {to!r} would be taken for an option after {name}")
    return line.insert(end, [name, to])
