"""nginx's configuration as a sequence of words with their places: what its own reader would see, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from changectl.core.errors import EditRefused

_SPACE = b" \t\r\n"
_RAW = b"_by_lua_block"  # the ending of directives whose block is another language


@dataclass(frozen=True, slots=True)
class Word:
    """One word or one of `{`, `}`, `;`. `start` and `end` are its bytes in the file, quotes included."""

    text: str
    start: int
    end: int
    line: int
    sign: bool = False  # one of the three


def words(data: bytes) -> Iterator[Word]:
    """All words in order; comments are left out.

    Raises:
        EditRefused: a quote or a block of another language has no end.
    """
    at, previous = 0, b""
    while True:
        at = _skip(data, at)
        if at >= len(data):
            return
        if data[at : at + 1] in (b"{", b"}", b";"):
            if data[at : at + 1] == b"{" and previous.endswith(_RAW):
                end = _end_of_raw(data, at)
                yield Word(";", at, end, _line(data, at), sign=True)  # the block is all one, and ends the line
            else:
                end = at + 1
                yield Word(chr(data[at]), at, end, _line(data, at), sign=True)
            at, previous = end, b""
            continue
        end = _end_of_word(data, at)
        previous = data[at:end]
        yield Word(_meaning(previous), at, end, _line(data, at))
        at = end


def _skip(data: bytes, at: int) -> int:
    """Past white space and comments; a `#` within a word begins none."""
    while at < len(data):
        if data[at : at + 1] == b"#":
            end = data.find(b"\n", at)
            at = len(data) if end < 0 else end
        elif data[at] in _SPACE:
            at += 1
        else:
            return at
    return at


def _end_of_word(data: bytes, at: int) -> int:
    first = data[at : at + 1]
    if first in (b'"', b"'"):
        return _end_of_quote(data, at)
    while at < len(data):
        here = data[at : at + 1]
        if here == b"\\":
            at += 2
        elif here == b"$" and data[at + 1 : at + 2] == b"{":
            at += 2  # the brace belongs to a variable
        elif data[at] in _SPACE or here in (b";", b"{"):
            return at
        else:
            at += 1
    return min(at, len(data))


def _end_of_quote(data: bytes, start: int) -> int:
    quote, at = data[start], start + 1
    while at < len(data):
        if data[at : at + 1] == b"\\":
            at += 2
        elif data[at] == quote:
            return at + 1
        else:
            at += 1
    raise EditRefused(f"line {_line(data, start)}: a quote is not closed")


def _end_of_raw(data: bytes, start: int) -> int:
    depth = 0
    for at in range(start, len(data)):
        depth += (data[at : at + 1] == b"{") - (data[at : at + 1] == b"}")
        if depth == 0:
            return at + 1
    raise EditRefused(f"line {_line(data, start)}: a block of Lua has no end")


def _meaning(raw: bytes) -> str:
    if raw[:1] in (b'"', b"'") and raw[-1:] == raw[:1] and len(raw) > 1:
        raw = raw[1:-1]
    return raw.decode("utf-8", "surrogateescape")


def _line(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1
