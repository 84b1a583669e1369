"""Writes a value as (part of) a word of a command line, in the quotes that stand there or in fresh ones."""

from __future__ import annotations

import re
from itertools import pairwise

from changectl.formats._pieces import Dialect, Word
from changectl.formats._text import refuse

_PLAIN_UNIT = re.compile(r"""[^\s"'\\;#]+""")
_PLAIN_SHELL = re.compile(r"[A-Za-z0-9_@%+=:,./{}\[\]^!*?~$\u0080-\U0010ffff-]+")
_RISKY_IN_SHELL = re.compile(r"[{}\[\]!*?~$]")


def check_value(value: str) -> None:
    """Refuse what cannot stand on one line of a configuration file."""
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        refuse(f"the new value {value!r} holds a control character or a line break")
    if any(0xD800 <= ord(char) <= 0xDFFF for char in value):
        refuse(f"the new value {value!r} is not valid Unicode")


def quoted(value: str, dialect: Dialect) -> str:
    """A whole word, with quotes only where they are needed."""
    if _is_plain(value, dialect):
        return _escaped(value, dialect, "")
    quote = "'" if '"' in value or (dialect.dollars == "shell" and "$" in value) else '"'
    if quote == "'" and "'" in value and not dialect.c_escapes:
        quote = '"'
    return quote + _escaped(value, dialect, quote) + quote


def replaced(word: Word, keep: int, value: str, dialect: Dialect) -> tuple[int, int, str]:
    """The span and text that turn a word into its first `keep` characters followed by `value`.

    Keeps the quotes that stand around the old value; where the new one does not fit them, the whole word is written
    anew.
    """
    old = word.pieces_from(keep)
    quotes = {piece.quote for piece in old}
    together = all(left.end == right.start for left, right in pairwise(old))
    if len(quotes) == 1 and together and _fits(value, old[0].quote, dialect):
        return old[0].start, old[-1].end, _escaped(value, dialect, old[0].quote)
    if not old and keep and value and _is_plain(value, dialect) and word.pieces[-1].end == word.end:
        return word.end, word.end, _escaped(value, dialect, "")
    if word.references_from(0) and not word.references_from(keep):
        refuse("the word starts with a variable or specifier and would need new quotes", word.line)
    return word.start, word.end, quoted(word.value[:keep] + value, dialect)


def _is_plain(value: str, dialect: Dialect) -> bool:
    if dialect.c_escapes:
        return bool(_PLAIN_UNIT.fullmatch(value))
    if not _PLAIN_SHELL.fullmatch(value):
        return False
    # Only a real shell expands these; plain splitting (a variable's value, compose) leaves them alone.
    return dialect.dollars != "shell" or not _RISKY_IN_SHELL.search(value)


def _fits(value: str, quote: str, dialect: Dialect) -> bool:
    """Whether the value can be written inside these quotes."""
    if not value:
        return bool(quote)
    if not quote:
        return _is_plain(value, dialect)
    return quote == '"' or "'" not in value or dialect.c_escapes


def _escaped(value: str, dialect: Dialect, quote: str) -> str:
    if dialect.c_escapes:
        value = value.replace("\\", "\\\\")
        if quote:
            value = value.replace(quote, "\\" + quote)
    elif quote == '"':
        specials = '\\"`$' if dialect.dollars == "shell" else '\\"'
        value = "".join("\\" + char if char in specials else char for char in value)
    if dialect.specifiers:
        value = value.replace("%", "%%")
    if dialect.dollars in ("systemd", "compose"):
        value = value.replace("$", "$$")
    return value
