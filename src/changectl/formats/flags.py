"""Options on a command line: a systemd unit's ExecStart, or a file that holds a shell-like list of arguments."""

from __future__ import annotations

from changectl.core.settings import Carrier, Key, Reading, Value
from changectl.formats._commandline import CommandLine
from changectl.formats._optionedit import edit_option
from changectl.formats._options import list_options, read_options
from changectl.formats._pieces import SHELL, UNIT, UNIT_NO_VARIABLES
from changectl.formats._text import BOM, Settings, decode, encode, line_of, refuse
from changectl.formats._unit import effective_assignments, unit_lines

_PREFIXES = "-@:+!"


def read(data: bytes, carrier: Carrier, key: Key) -> Reading:
    """All occurrences of the option. Raises EditRefused or ValueElsewhere where the answer is not certain."""
    return read_options(_line(data, carrier).words, key)


def edit(data: bytes, carrier: Carrier, key: Key, to: Value) -> bytes:
    """The file with the option replaced, inserted (at the end of the options) or removed."""
    return encode(edit_option(_line(data, carrier), key, to))


def settings(data: bytes, carrier: Carrier, key: Key | None = None, *, whole: bool = False) -> Settings:
    """Options and positional words by name; `whole` adds the unit's other assignments."""
    found = list_options(_line(data, carrier).words, key)
    if whole and carrier.unit:
        command = effective_assignments(data, "ExecStart")[-1].start
        for assignment in unit_lines(data):
            if assignment.start != command:
                name = f"[{assignment.section}] {assignment.key}"
                found[name] = (*found.get(name, ()), assignment.value)
    return found


def _line(data: bytes, carrier: Carrier) -> CommandLine:
    return _exec_start(data) if carrier.unit else _argument_file(data)


def _exec_start(data: bytes) -> CommandLine:
    commands = effective_assignments(data, "ExecStart")
    if not commands:
        refuse("no ExecStart in the [Service] section of this file is in force; the command stands elsewhere")
    if len(commands) > 1:
        lines = ", ".join(str(command.line) for command in commands)
        refuse(f"several ExecStart commands (lines {lines}); only a unit with one can be edited")
    command, text = commands[0], decode(data)
    start = command.value_start
    while start < command.value_end and text[start] in _PREFIXES:
        start += 1
    prefix = text[command.value_start : start]
    if text[start : start + 1] in ("'", '"'):
        # systemd looks for the prefixes after unquoting.
        prefix += text[start + 1 : start + 1 + len(_PREFIXES)]
    dialect = UNIT_NO_VARIABLES if ":" in prefix.split("/")[0] else UNIT
    line = CommandLine.of(text, start, command.value_end, dialect)
    for word in line.words:
        if text[word.start : word.end] == ";":
            refuse("a lone ; separates two commands here; only a unit with one command can be edited", word.line)
    if not line.words:
        refuse("ExecStart has no program", command.line)
    return line


def _argument_file(data: bytes) -> CommandLine:
    text = decode(data)
    start = len(BOM) if text.startswith(BOM) else 0
    if text.startswith("#!", start):
        refuse("the file is a script, not a list of arguments; a pattern carrier can edit it", line_of(text, start))
    return CommandLine.of(text, start, len(text), SHELL)
