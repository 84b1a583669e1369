"""Foreign text made harmless: nothing in it steers a terminal, changes the order of what is around it, or hides."""

from __future__ import annotations

import unicodedata

# Characters that change the order or the look of the text around them, or hide: bidirectional controls, zero-width
# characters, line and paragraph separators, interlinear marks.
_FORMATTING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def safe(text: object, *, lines: bool = True, encoding: str | None = None) -> str:
    """Text in which every control, formatting and unassigned character is written as an escape.

    Args:
        text: anything; its `str` is taken.
        lines: whether line breaks stay.
        encoding: of the stream; what it cannot carry is escaped, too.
    """
    raw = str(text)
    if raw.isascii() and raw.isprintable():
        return raw
    escaped = "".join(_escape(character, keep_lines=lines) for character in raw)
    return escaped.encode(encoding, "backslashreplace").decode(encoding) if encoding else escaped


def _escape(character: str, *, keep_lines: bool) -> str:
    if character == "\n" and keep_lines:
        return character
    if unicodedata.category(character) not in _FORMATTING:
        return character
    code = ord(character)
    if code < 0x100:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
