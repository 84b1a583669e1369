"""systemd's EnvironmentFile dialect: assignments with the places of their values. Neither a shell's nor dotenv's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from changectl.formats._text import BOM, is_unicode, line_of, refuse

_BLANK = " \t"
_NEEDS_ESCAPE = '"\\`$'
_BARE = re.compile(r"[A-Za-z0-9_./:,+@%=-]*")


@dataclass(frozen=True, slots=True)
class FileVariable:
    """One assignment of an environment file."""

    name: str
    value: str
    line: int
    start: int  # of the line the name stands in
    value_start: int  # of the value as written, quotes included
    value_end: int
    quote: str  # the quote around the whole value; "": bare; "mixed": several pieces or escapes
    doubtful: str = ""  # why programs may read this line differently


def file_variables(text: str) -> list[FileVariable]:
    """All assignments in file order.

    Raises:
        EditRefused: a quote is opened and never closed.
    """
    found: list[FileVariable] = []
    position = len(BOM) if text.startswith(BOM) else 0
    after_open_comment = False
    while position < len(text):
        if text[position] in " \t\r\n":
            after_open_comment = after_open_comment and text[position] in _BLANK
            position += 1
            continue
        stop = _line_stop(text, position)
        if text[position] in "#;":
            # Before systemd 254 such a comment swallowed the next line.
            after_open_comment = text[position:stop].endswith("\\")
            position = stop + (2 if text.startswith("\r\n", stop) else 1)
            continue
        equals = text.find("=", position, stop)
        if equals < 0:
            position, after_open_comment = stop, False
            continue
        variable = _variable(text, position, equals, after_open_comment)
        found.append(variable)
        position, after_open_comment = max(variable.value_end, _line_stop(text, variable.value_end)), False
    return found


def _line_stop(text: str, position: int) -> int:
    found = re.compile(r"[\r\n]").search(text, position)
    return found.start() if found else len(text)


def _variable(text: str, position: int, equals: int, after_open_comment: bool) -> FileVariable:
    name = text[position:equals].rstrip(_BLANK)
    value, start, end, quote = _value(text, equals + 1)
    raw = text[start:end]
    doubtful = ""
    if after_open_comment:
        doubtful = "the comment above it ends with a backslash; older systemd takes this line as part of the comment"
    elif not is_unicode(value):
        doubtful = "its value is not UTF-8, so systemd ignores it"
    elif quote != '"' and quote != "'" and re.search(r"\s#", raw):
        doubtful = "systemd takes the # as part of the value, a shell as a comment; put comments on lines of their own"
    return FileVariable(name, value, line_of(text, position), position, start, end, quote, doubtful)


def _value(text: str, position: int) -> tuple[str, int, int, str]:
    """The value that starts after `=`: decoded, its span, and how it is quoted."""
    while position < len(text) and text[position] in _BLANK:
        position += 1
    start, end, out, bare_from = position, position, "", 0
    quotes: list[str] = []
    fresh = True  # a quote counts at the start and right after another quoted piece
    while position < len(text) and text[position] not in "\r\n":
        char = text[position]
        if fresh and char in "'\"":
            piece, position = _quoted(text, position, char)
            quotes.append(char)
            out, end = out + piece, position
            bare_from = len(out)
            continue
        if fresh and char in _BLANK:
            position += 1
            continue
        if char == "\\":
            following = text[position + 1 : position + 2]
            skip = 3 if text.startswith("\r\n", position + 1) else 2
            out += "" if following in ("\n", "\r") else following
            position = min(position + skip, len(text))
            quotes.append("mixed")
        else:
            out, position = out + char, position + 1
            quotes.append("")
        fresh, end = False, position
    tail = out[bare_from:].rstrip(_BLANK)
    end -= len(text[start:end]) - len(text[start:end].rstrip(_BLANK)) if not fresh else 0
    kinds = set(quotes)
    quoted_once = len(quotes) == 1 and quotes[0] in ("'", '"')
    style = quotes[0] if quoted_once else "" if kinds <= {""} else "mixed"
    return out[:bare_from] + tail, start, end, style


def _quoted(text: str, position: int, quote: str) -> tuple[str, int]:
    """A quoted piece, decoded, and the position after it."""
    out, opened = "", position
    position += 1
    while text[position : position + 1] != quote:
        if position >= len(text):
            refuse(f"a quote ({quote}) is opened and never closed", line_of(text, opened))
        char = text[position]
        if char == "\\" and quote == '"':
            following = text[position + 1 : position + 2]
            if following in _NEEDS_ESCAPE:
                out += following
            elif following != "\n":
                out += char + following
            position += 2
        else:
            out, position = out + char, position + 1
    return out, position + 1


def written(value: str, quote: str) -> str:
    r"""A value as it is written, in the given quotes if it fits them.

    A start script may read such a file with its shell (`. /etc/default/chat`), so only what means the same to a shell
    and to every systemd is written: bare words without any sign of the shell's; single quotes around what holds neither
    `'` nor a backslash (systemd before 240 takes that as an escape even there); double quotes with a backslash before
    each of `" \ $` and the backquote.
    """
    single_fits = "'" not in value and "\\" not in value
    if quote == "'" and single_fits:
        return f"'{value}'"
    if quote in ("", "mixed") and _BARE.fullmatch(value):
        return value
    escaped = "".join("\\" + char if char in _NEEDS_ESCAPE else char for char in value)
    if quote != '"' and escaped != value and single_fits:
        return f"'{value}'"
    return f'"{escaped}"'


def check_nested(value: str, quote: str) -> None:
    """Refuse an option's value that a shell would take for more than text inside the variable's quotes."""
    if quote in ("", "mixed"):
        unsafe = "" if _BARE.fullmatch(value) else "characters that need quotes around the whole variable"
    else:
        found = [char for char in (_NEEDS_ESCAPE if quote == '"' else "'\\") if char in value]
        unsafe = f"{' '.join(found)} inside the quotes of a variable" if found else ""
    if unsafe:
        refuse(f"{value!r} cannot be written there: it has {unsafe}, which a shell that reads the file would act on")
