"""systemd units: assignments with their places, and which of several files provides a directive."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from changectl.formats._pieces import UNIT_NO_VARIABLES
from changectl.formats._text import BOM, decode, refuse
from changectl.formats._words import split


@dataclass(frozen=True, slots=True)
class Assignment:
    """One `Key=value` of a unit file. Positions count in the file's decoded text."""

    section: str  # "" before the first header: systemd ignores such lines
    key: str
    value: str  # with continuations replaced by a space, as systemd reads it; not unquoted
    line: int  # 1-based, of the key
    start: int  # of the line
    value_start: int
    value_end: int  # trailing blanks excluded
    end: int  # after the last line's newline


@dataclass(frozen=True, slots=True)
class EnvironmentFile:
    """One file that `EnvironmentFile=` names."""

    path: str  # as written, specifiers unresolved
    optional: bool
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of `Environment=` that is in force."""

    value: str
    file: str
    line: int


@dataclass(slots=True)
class _Logical:
    """A logical line while its physical lines are collected."""

    start: int
    line: int
    parts: list[str] = field(default_factory=list)
    end: int = 0  # of the content
    after: int = 0  # of the last physical line, newline included


def unit_lines(data: bytes) -> tuple[Assignment, ...]:
    """The assignments of a unit file or drop-in, in file order; what systemd ignores is left out.

    Raises:
        EditRefused: the bytes are no text.
    """
    text = decode(data)
    found: list[Assignment] = []
    section = ""
    for logical in _logical_lines(text):
        content = "".join(logical.parts).strip()
        header = re.fullmatch(r"\[(.*)\]", content)
        if header:
            section = header[1]
            continue
        name, equals, value = content.partition("=")
        if not equals or content.startswith("["):
            continue
        found.append(_assignment(text, logical, section, name.strip(), value.strip()))
    return tuple(found)


def section_ends(data: bytes, section: str) -> tuple[int, ...]:
    """Where the content of each `[section]` block ends: after its last assignment or header line."""
    text = decode(data)
    ends: list[int] = []
    inside = False
    for logical in _logical_lines(text):
        content = "".join(logical.parts).strip()
        if re.fullmatch(r"\[.*\]", content):
            inside = content == f"[{section}]"
            if inside:
                ends.append(logical.after)
        elif inside and content:
            ends[-1] = logical.after
    return tuple(ends)


def _logical_lines(text: str) -> list[_Logical]:
    """Physical lines joined as systemd joins them; comments are skipped, also inside a continued line."""
    lines: list[_Logical] = []
    current: _Logical | None = None
    position = len(BOM) if text.startswith(BOM) else 0
    for number, raw in enumerate(text[position:].split("\n"), 1):
        start, position = position, position + len(raw) + 1
        line = raw.removesuffix("\r")
        if line.lstrip()[:1] in ("#", ";"):
            continue
        if current is None:
            current = _Logical(start, number)
        continued = _continues(line)
        content = line[:-1] if continued else line
        current.parts.append(content + " " if continued else content)
        current.after = min(position, len(text))
        if content.strip():
            # A last continuation onto a blank line is common and belongs to nothing.
            current.end = start + len(content.rstrip())
        if not continued:
            lines.append(current)
            current = None
    if current is not None:
        lines.append(current)
    return [line for line in lines if "".join(line.parts).strip()]


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _assignment(text: str, logical: _Logical, section: str, key: str, value: str) -> Assignment:
    equals = text.index("=", logical.start)
    region = text[equals + 1 : logical.end]
    # Blanks and continuations around the value are not part of it.
    lead = re.match(r"(?:[ \t\r]|\\\r?\n(?:[ \t]*[#;][^\n]*\n)*)*", region)
    value_start = equals + 1 + (lead.end() if lead else 0)
    value_end = logical.end if value else value_start
    return Assignment(section, key, value, logical.line, logical.start, value_start, value_end, logical.after)


def effective_assignments(data: bytes, directive: str, section: str = "Service") -> tuple[Assignment, ...]:
    """A list directive's assignments in one file that an empty assignment after them does not reset."""
    kept: list[Assignment] = []
    for assignment in unit_lines(data):
        if assignment.section == section and assignment.key == directive:
            kept = [*kept, assignment] if assignment.value else []
    return tuple(kept)


def effective_file(files: Sequence[tuple[str, bytes]], directive: str, section: str = "Service") -> str | None:
    """The file that provides a directive's effective value.

    Args:
        files: (path, content) of the fragment and its drop-ins, in the order systemd reads them.
        directive: "ExecStart", "Environment", ...; `Exec...` directives add up until an empty one resets them,
            others are replaced by the later one.
        section: the section it stands in.

    Returns:
        The path, or None where no file sets it.

    Raises:
        EditRefused: more than one command of an `Exec...` directive remains in force.
    """
    kept: list[tuple[str, int]] = []
    for path, data in files:
        for assignment in unit_lines(data):
            if assignment.section != section or assignment.key != directive:
                continue
            here = [(path, assignment.line)] if assignment.value else []
            kept = [*kept, *here] if here and directive.startswith("Exec") else here
    if len(kept) > 1:
        places = ", ".join(f"{path} line {line}" for path, line in kept)
        refuse(f"more than one {directive} remains in force: {places}; a drop-in resets it with an empty {directive}=")
    return kept[-1][0] if kept else None


def environment_files(files: Sequence[tuple[str, bytes]]) -> tuple[EnvironmentFile, ...]:
    """The files that `EnvironmentFile=` names, in reading order (a later one wins), resets honoured."""
    kept: list[EnvironmentFile] = []
    for path, data in files:
        for assignment in unit_lines(data):
            if assignment.section != "Service" or assignment.key != "EnvironmentFile":
                continue
            name = assignment.value.removeprefix("-")
            here = EnvironmentFile(name, name != assignment.value, path, assignment.line)
            kept = [*kept, here] if assignment.value else []
    return tuple(kept)


def unit_environment(files: Sequence[tuple[str, bytes]]) -> dict[str, Variable]:
    """The variables `Environment=` sets: a later one wins, an empty assignment resets all before it.

    Raises:
        EditRefused: an assignment is quoted or escaped in a way that systemd does not read.
    """
    variables: dict[str, Variable] = {}
    for path, data in files:
        text = decode(data)
        for assignment in unit_lines(data):
            if assignment.section != "Service" or assignment.key != "Environment":
                continue
            if not assignment.value:
                variables = {}
            for word in split(text, assignment.value_start, assignment.value_end, UNIT_NO_VARIABLES):
                name, equals, value = word.value.partition("=")
                if equals:
                    variables[name] = Variable(value, path, word.line)
    return variables
