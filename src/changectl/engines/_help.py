"""Reading an engine's own `--help`: does it list a flag, and which values does it allow?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from changectl.core.settings import Setting

# A help text names at least this many flags of the table; fewer means that something else answered.
_ENOUGH = 3
_NEXT_OPTION = re.compile(r"\n\s*-{1,2}[A-Za-z]")


def lists(text: str, setting: Setting, table: Sequence[Setting], *, underscores: bool) -> bool | None:
    """Whether the help lists the setting by a flag or its environment variable; None: not this engine's help."""
    flags = _flags(text, underscores)
    known = sum(1 for row in table if any(_dashed(flag, underscores) in flags for flag in row.flags))
    if known < _ENOUGH:
        return None
    if any(_dashed(flag, underscores) in flags for flag in setting.flags):
        return True
    if setting.env and re.search(rf"\b{re.escape(setting.env)}\b", text):
        return True
    # A variable that is read but in no help text says nothing either way.
    return False if setting.flags else None


def choices(text: str, setting: Setting) -> list[str]:
    """The values that the help allows, where it lists them: `{a,b}` or `allowed values: a, b`. Empty: not listed."""
    for flag in setting.flags:
        match = re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", text)
        if match is None:
            continue
        rest = text[match.end() :]
        end = _NEXT_OPTION.search(rest)
        block = rest[: end.start()] if end else rest
        braces = re.match(r"(?:\s*,\s*-[\w-]+)*[ =\n]\s*\{([^{}]+)\}", block)
        allowed = re.search(r"allowed values:\s*([\w., \n-]+?)(?:\n\s*\(|\(|$)", block)
        found = braces or allowed
        if found:
            return [word for word in re.split(r"[\s,]+", found[1].strip()) if word]
    return []


def _flags(text: str, underscores: bool) -> set[str]:
    return {_dashed(flag, underscores) for flag in re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*", text)}


def _dashed(flag: str, underscores: bool) -> str:
    return flag.replace("_", "-") if underscores else flag
