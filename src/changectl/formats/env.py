"""Environment variables: a file in systemd's EnvironmentFile dialect, or the Environment= lines of a unit."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

from changectl.core.settings import Carrier, Key, Occurrence, Reading, Value
from changectl.formats._commandline import CommandLine, nested_line
from changectl.formats._envfile import FileVariable, check_nested, file_variables, written
from changectl.formats._optionedit import edit_option
from changectl.formats._options import list_options, read_options
from changectl.formats._pieces import SPLIT, UNIT_NO_VARIABLES, Word
from changectl.formats._quoting import quoted, replaced
from changectl.formats._text import Settings, append_line, cut_lines, decode, encode, line_of, newline, refuse, splice
from changectl.formats._unit import Assignment, section_ends, unit_lines
from changectl.formats._words import split

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """All assignments of the variable (or, with `then: flags`, of the option inside the variable `at`)."""
    if carrier.then:
        return read_options(_nested(data, carrier).words, key)
    if carrier.unit:
        return Reading(
            tuple(Occurrence(_plain(hit.word, name), hit.word.line, name) for name, hit in _unit_hits(data, key))
        )
    return Reading(tuple(Occurrence(hit.value, hit.line, hit.name) for hit in _file_hits(decode(data), key)))


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file with the variable replaced, inserted (as a new line) or removed."""
    if carrier.then:
        line = _nested(data, carrier)
        if to is None or carrier.unit:
            return encode(edit_option(line, key, to))
        variable = Key(names=(carrier.at or "",))
        quote = _file_hits(decode(data), variable)[-1].quote
        check_nested(to, quote)
        edited = edit_option(line, key, to)
        if _file_hits(edited, variable)[-1].quote != quote:
            # The option's own quotes ended those of the variable: systemd keeps them as text, a shell takes them out.
            refuse(f"{to!r} cannot be written there: it needs the quotes that the whole variable stands in")
        return encode(edited)
    return encode(_edit_unit(data, key, to) if carrier.unit else _edit_file(decode(data), key, to))


def settings(data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
    """Variables by name, or the options inside `at`; `whole` adds everything else the file sets."""
    found: Settings = {}
    if carrier.then:
        found = list_options(_nested(data, carrier).words, key)
    if carrier.then and not whole:
        return found
    for name, value in _everything(data, carrier, whole):
        if not (carrier.then and name == carrier.at):
            found[name] = (*found.get(name, ()), value)
    return found


def _everything(data: bytes, carrier: Carrier, whole: bool) -> list[tuple[str, str]]:
    if not carrier.unit:
        return [(variable.name, variable.value) for variable in file_variables(decode(data))]
    pairs = []
    for assignment in unit_lines(data):
        if _is_environment(assignment):
            pairs += [(word.value.partition("=")[0], word.value.partition("=")[2]) for word in _words(data, assignment)]
        elif whole:
            pairs.append((f"[{assignment.section}] {assignment.key}", assignment.value))
    return pairs


# --- environment files


def _file_hits(text: str, key: Key) -> list[FileVariable]:
    """The variable's assignments under the first of its names that stands there."""
    variables = file_variables(text)
    for name in key.names:
        for variable in variables:
            if re.fullmatch(rf"export\s+{re.escape(name)}", variable.name):
                refuse(f"`export` is not understood by systemd, which ignores this line ({name})", variable.line)
        hits = [variable for variable in variables if variable.name == name]
        for hit in hits:
            if hit.doubtful:
                refuse(f"{name}: {hit.doubtful}", hit.line)
        if hits:
            return hits
    return []


def _refuse_unset(carrier: Carrier, names: Sequence[str]) -> NoReturn:
    """The variable that an entry of `config` names is not there; those that are may be the one that is meant."""
    there = ", ".join(dict.fromkeys(names)) or "none"
    place = carrier.file or f"the unit {carrier.unit}"
    entry = f"`at: {carrier.at}` in the entry of `config` for it in the service file"
    refuse(f"{place} sets no variable {carrier.at}; it sets: {there}. Correct {entry}")


def _edit_file(text: str, key: Key, to: Value) -> str:
    hits = _file_hits(text, key)
    if to is None:
        return cut_lines(text, hits[-1].start, max(hits[-1].value_end, hits[-1].start + 1))
    if hits:
        hit = hits[-1]
        return splice(text, hit.value_start, hit.value_end, written(to, hit.quote))
    if text.rstrip("\r\n").endswith("\\"):
        refuse(
            "the last line ends with a backslash, so a line after it would become part of it", line_of(text, len(text))
        )
    return append_line(text, f"{_checked(key.names[0])}={written(to, '')}")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        refuse(f"{name!r} is no name for an environment variable")
    return name


# --- units


@dataclass(frozen=True, slots=True)
class _UnitHit:
    assignment: Assignment
    word: Word
    alone: bool  # the only variable of its line


def _is_environment(assignment: Assignment) -> bool:
    return assignment.section == "Service" and assignment.key == "Environment"


def _words(data: bytes, assignment: Assignment) -> list[Word]:
    return split(decode(data), assignment.value_start, assignment.value_end, UNIT_NO_VARIABLES)


def _unit_hits(data: bytes, key: Key) -> list[tuple[str, _UnitHit]]:
    """Assignments in force of the first of the key's names that stands there."""
    kept = _in_force(data)
    for name in key.names:
        hits = [(name, hit) for hit in kept if hit.word.value.partition("=")[:2] == (name, "=")]
        if hits:
            return hits
    return []


def _in_force(data: bytes) -> list[_UnitHit]:
    """Every assignment of the unit that counts."""
    kept: list[_UnitHit] = []
    if not section_ends(data, "Service"):
        refuse("there is no [Service] section: systemd ignores assignments outside of it")
    for assignment in unit_lines(data):
        if _is_environment(assignment):
            words = _words(data, assignment)
            kept = [*kept, *(_UnitHit(assignment, word, len(words) == 1) for word in words)] if words else []
    return kept


def _plain(word: Word, name: str) -> str:
    references = word.references_from(len(name) + 1)
    if references:
        refuse(f"the value of {name} contains the specifier {references[0]}, which only systemd resolves", word.line)
    return word.value[len(name) + 1 :]


def _edit_unit(data: bytes, key: Key, to: Value) -> str:
    text, hits = decode(data), _unit_hits(data, key)
    if not hits:
        return _insert_into_unit(data, text, f"{_checked(key.names[0])}={to}")
    name, hit = hits[-1]
    if to is not None:
        return splice(text, *replaced(hit.word, len(name) + 1, to, UNIT_NO_VARIABLES))
    if hit.alone:
        return cut_lines(text, hit.assignment.start, hit.assignment.value_end)
    line = CommandLine.of(text, hit.assignment.value_start, hit.assignment.value_end, UNIT_NO_VARIABLES)
    index = [word.start for word in line.words].index(hit.word.start)
    return line.remove(index, index)


def _insert_into_unit(data: bytes, text: str, assignment: str) -> str:
    line = f"Environment={quoted(assignment, UNIT_NO_VARIABLES)}"
    present = [found.end for found in unit_lines(data) if _is_environment(found)]
    position = present[-1] if present else section_ends(data, "Service")[-1]
    ended = text[:position].endswith("\n")
    return splice(text, position, position, line + newline(text) if ended else newline(text) + line)


# --- a command line inside a variable


def _nested(data: bytes, carrier: Carrier) -> CommandLine:
    if carrier.then != "flags":
        refuse(f"only flags can stand inside a variable, not {carrier.then}")
    if not carrier.at:
        refuse("`then: flags` needs `at`: the variable that holds the arguments")
    text, variable = decode(data), Key(names=(carrier.at,))
    if carrier.unit:
        units = _unit_hits(data, variable)
        if not units:
            _refuse_unset(carrier, [hit.word.value.partition("=")[0] for hit in _in_force(data)])
        name, hit = units[-1]
        pieces, value = hit.word.pieces_from(len(name) + 1), _plain(hit.word, name)
        start, end = (pieces[0].start, pieces[-1].end) if pieces else (hit.word.end, hit.word.end)
        return nested_line(text, start, end, value, SPLIT)
    files = _file_hits(text, variable)
    if not files:
        _refuse_unset(carrier, [variable.name for variable in file_variables(text)])
    quote = 1 if files[-1].quote in ("'", '"') else 0
    return nested_line(text, files[-1].value_start + quote, files[-1].value_end - quote, files[-1].value, SPLIT)
