"""What a running process says about itself: the settings on its command line, and how to ask its program for help."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from changectl.core.settings import Setting

_PYTHON = re.compile(r"(?:python|pypy)\d*(?:\.\d+)*")
_PYTHON_WITH_ARGUMENT = {"-X", "-W", "--check-hash-based-pycs"}
_SHELLS = {"sh", "bash", "dash", "ash", "zsh", "ksh", "busybox"}


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
    flags = {_spelling(flag, underscores): setting for setting in settings for flag in setting.flags}
    negations = {_spelling(setting.negation, underscores): setting for setting in settings if setting.negation}
    found: dict[str, str] = {}
    position = 0
    while position < len(argv):
        word, inline = _split(argv[position])
        name = _spelling(word, underscores)
        position += 1
        if name in negations and inline is None:
            found[negations[name].name] = "false"
        elif name in flags:
            setting = flags[name]
            if inline is not None:
                found[setting.name] = inline
            elif setting.type == "bool":
                found[setting.name] = "true"
            elif position < len(argv):
                found[setting.name] = argv[position]
                position += 1
    return found


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
