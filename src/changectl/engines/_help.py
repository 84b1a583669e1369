"""Reading an engine's own `--help`: does it list a flag, and which values does it allow?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from changectl.core.settings import Setting
from changectl.engines._values import parse_bool

# A help text names at least this many flags of the table; fewer means that something else answered.
_ENOUGH = 3
_NEXT_OPTION = re.compile(r"\n\s*-{1,2}[A-Za-z]")
# Directly behind the flag and its other spellings: {a,b} as argparse writes it, [a|b] as llama.cpp does.
_HEAD = re.compile(r"(?:\s*,\s*-[\w-]+)*[ =\n]\s*(?:\{(?=[^{}]*\})|\[(?=[^\[\]]*\|))([^\[\]{}]+)[\]}]")
_SENTENCE = re.compile(r"(?i)(?:allowed values|possible values|choices):\s*([\w.'\"+-]+(?:\s*,\s*[\w.'\"+-]+)+)")


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
    """The values that the help allows, where it lists them: `{a,b}`, `[a|b]`, `allowed values: a, b`, `choices: a, b`.

    Empty: it does not list them.
    """
    for flag in setting.flags:
        for block in _blocks(text, flag):
            if found := _HEAD.match(block) or _SENTENCE.search(block):
                words = re.split(r"[\s,|]+", found[1].strip())
                return [word for word in (word.strip("'\"").rstrip(".") for word in words) if word]
    return []


def allows(listed: Sequence[str], value: str) -> bool:
    """Whether one of the listed values is meant; who lists on and off understands the other words for them, too."""
    if value.strip() in listed:
        return True
    return parse_bool(value) in {parse_bool(word) for word in listed} - {None}


def _blocks(text: str, flag: str) -> Iterator[str]:
    """What the help says of the flag, where an option's own lines begin with it; a mention elsewhere does not count."""
    for match in re.finditer(rf"(?m)^\s*(?:-[\w-]+(?: \w+)?,\s*)*{re.escape(flag)}(?![\w-])", text):
        rest = text[match.end() :]
        end = _NEXT_OPTION.search(rest)
        yield rest[: end.start()] if end else rest


def _flags(text: str, underscores: bool) -> set[str]:
    return {_dashed(flag, underscores) for flag in re.findall(r"(?<![\w-])-{1,2}[A-Za-z][\w-]*", text)}


def _dashed(flag: str, underscores: bool) -> str:
    return flag.replace("_", "-") if underscores else flag
