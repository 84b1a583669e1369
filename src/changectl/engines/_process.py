"""What a running process says about itself: the settings on its command line, and how to ask its program for help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from changectl.core.settings import Setting

_PYTHON = re.compile(r"(?:python|pypy)\d*(?:\.\d+)*")
_PYTHON_WITH_ARGUMENT = {"-X", "-W", "--check-hash-based-pycs"}
_BOOLEANS = {"true", "false"}
_SHELLS = {"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"}


class _Occurrence(NamedTuple):
    """A setting on a command line, by its words' places."""

    name: str  # the setting's
    value: str | None
    first: int
    last: int


def program(argv: Sequence[str]) -> list[str]:
    """The leading words that name the program itself: `llama-server`, `python -m module`, `python script.py`.

    Empty where it cannot be told (a shell running text of its own): asking that for help could start anything.
    """
    if not argv or not argv[0]:
        return []
    base = PurePosixPath(argv[0]).name
    if base in _SHELLS:
        return []
    return _python_program(argv) if _PYTHON.fullmatch(base) else [argv[0]]


def _python_program(argv: Sequence[str]) -> list[str]:
    position = 1
    while position < len(argv):
        word = argv[position]
        if word == "-m":
            return list(argv[: position + 2]) if position + 1 < len(argv) else []
        if word == "-c" or word == "-":
            return []
        if not word.startswith("-"):
            return list(argv[: position + 1])
        position += 2 if word in _PYTHON_WITH_ARGUMENT else 1
    return []


def flags_given(argv: Sequence[str], settings: Sequence[Setting], *, underscores: bool) -> dict[str, str]:
    """The settings on a command line, by name; the last occurrence counts, as in every engine here."""
    return {hit.name: hit.value for hit in _occurrences(argv, settings, underscores) if hit.value is not None}


def without(argv: Sequence[str], setting: Setting, settings: Sequence[Setting], *, underscores: bool) -> list[str]:
    """The command line without the words that give one setting: its flags and, by their place, their values.

    The whole table is read: a word that is the value of another flag is never taken for the setting's own flag.
    """
    gone = {
        position
        for hit in _occurrences(argv, settings, underscores)
        if hit.name == setting.name
        for position in range(hit.first, hit.last + 1)
    }
    return [word for position, word in enumerate(argv) if position not in gone]


def _occurrences(argv: Sequence[str], settings: Sequence[Setting], underscores: bool) -> Iterator[_Occurrence]:
    """Every place where a setting of the table stands on the command line, in order."""
    flags = {_spelling(flag, underscores): setting for setting in settings for flag in setting.flags}
    negations = {_spelling(setting.negation, underscores): setting for setting in settings if setting.negation}
    position = len(program(argv))  # `python -m MODULE`: that -m is Python's own, whatever it means to the engine
    while position < len(argv):
        word, inline = _split(argv[position])
        name = _spelling(word, underscores)
        first = position
        position += 1
        if name in negations and inline is None:
            yield _Occurrence(negations[name].name, "false", first, first)
        elif name in flags:
            value, position = _value(argv, position, inline, flags[name])
            yield _Occurrence(flags[name].name, value, first, position - 1)


def _value(argv: Sequence[str], position: int, inline: str | None, setting: Setting) -> tuple[str | None, int]:
    """The value of a flag, and where the words behind it begin; None: no value stands there."""
    following = argv[position] if position < len(argv) else None
    if inline is not None:
        return inline, position
    if setting.type == "bool":
        worded = following is not None and following.lower() in _BOOLEANS
        return (following, position + 1) if worded else ("true", position)
    return (None, position) if following is None else (following, position + 1)


def environment_given(environ: Mapping[str, str], settings: Sequence[Setting]) -> dict[str, str]:
    """The settings in a process's environment, by name."""
    return {setting.name: environ[setting.env] for setting in settings if setting.env and setting.env in environ}


def _split(word: str) -> tuple[str, str | None]:
    if not word.startswith("-") or "=" not in word:
        return word, None
    name, _, value = word.partition("=")
    return name, value


def _spelling(flag: str, underscores: bool) -> str:
    return flag.replace("_", "-") if underscores and flag.startswith("--") else flag
