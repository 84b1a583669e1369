"""Shared by all formats: bytes as lossless text, line numbers, splices, and the two ways to refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from changectl.core.errors import EditRefused

BOM = "\ufeff"
EMPTY_MAP = "(empty map)"  # the name under which settings list a map without members

Settings = dict[str, tuple[str, ...]]  # name to values, in file order


class ValueElsewhere(EditRefused):
    """The value stands in a variable: it has to be read and edited where that variable gets its value.

    Attributes:
        variable: the variable's name, without `$` and braces.
        candidates: variables that may hold the whole option with its value; empty: `variable` is the value.
        insertable: whether `variable` is named like one that holds options, so that a new one may be added there.
    """

    reason = "value_elsewhere"

    def __init__(
        self, message: str, variable: str, candidates: Sequence[str] = (), *, insertable: bool = False
    ) -> None:
        super().__init__(message)
        self.variable = variable
        self.candidates = tuple(candidates)
        self.insertable = insertable


def decode(data: bytes) -> str:
    """The bytes as text in which every byte survives: what is no UTF-8 is carried along untouched.

    Raises:
        EditRefused: the file holds NUL bytes or is UTF-16, so no offset found in it could be trusted.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise EditRefused("line 1: the file is UTF-16; only UTF-8 and other ASCII-compatible files can be edited")
    if b"\0" in data:
        refuse("the file holds a NUL byte, so it is no text file", data[: data.index(b"\0")].count(b"\n") + 1)
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes `decode` made the text from."""
    return text.encode("utf-8", "surrogateescape")


def is_unicode(text: str) -> bool:
    """Whether the bytes behind the text were all UTF-8."""
    return not any("\udc80" <= char <= "\udcff" for char in text)


def line_of(text: str, position: int) -> int:
    """The 1-based line in which a position lies."""
    return text.count("\n", 0, position) + 1


def refuse(message: str, line: int = 0) -> NoReturn:
    """Raise EditRefused with the line in front, if there is one."""
    raise EditRefused(f"line {line}: {message}" if line else message)


def splice(text: str, start: int, end: int, new: str) -> str:
    """The text with one span replaced."""
    return text[:start] + new + text[end:]


def line_end(text: str, position: int) -> int:
    """Where the line of a position ends: before its newline (and the carriage return before that)."""
    end = text.find("\n", position)
    if end < 0:
        return len(text)
    return end - 1 if end > position and text[end - 1] == "\r" else end


def line_start(text: str, position: int) -> int:
    """Where the line of a position starts."""
    return text.rfind("\n", 0, position) + 1


def newline(text: str) -> str:
    """The line ending new lines get: that of the first line."""
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def cut_lines(text: str, start: int, end: int) -> str:
    """The text without the whole lines that a span touches; a missing final newline stays missing."""
    first, last = line_start(text, start), text.find("\n", max(end - 1, start))
    if last >= 0:
        return text[:first] + text[last + 1 :]
    before = text[:first]
    if before.endswith("\r\n"):
        return before[:-2]
    return before.removesuffix("\n")


def append_line(text: str, line: str) -> str:
    """The text with a new last line; a missing final newline stays missing."""
    if not text.strip(BOM):
        return f"{text}{line}\n"
    return f"{text}{line}{newline(text)}" if text.endswith("\n") else f"{text}{newline(text)}{line}"


def same_name(left: str, right: str, underscores: bool) -> bool:
    """Whether two names are the same, `_` and `-` being one character where the engine treats them so."""
    return left == right or (underscores and left.replace("_", "-") == right.replace("_", "-"))
