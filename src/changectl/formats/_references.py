"""What on a command line only the host can resolve: systemd's specifiers and variables."""

from __future__ import annotations

import re
from collections.abc import Sequence

from changectl.formats._pieces import Dialect, Piece, Word

_BRACED = re.compile(r"\$\{([^}]*)\}")
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")


def with_references(word: Word, dialect: Dialect) -> Word:
    """The word with `%i`, `${NAME}`, `$NAME`, `%%` and `$$` recognised as what they are in the dialect."""
    pieces = _specifiers(word.pieces) if dialect.specifiers else list(word.pieces)
    if dialect.dollars == "literal":
        return Word(tuple(pieces), word.start, word.end, word.line)
    value = "".join(piece.text for piece in pieces)
    bare = re.fullmatch(r"\$([^${].*)", value, re.DOTALL) if dialect.dollars == "systemd" else _NAME.fullmatch(value)
    quoted = any(piece.quote for piece in pieces)
    if bare and (dialect.dollars == "systemd" or (dialect.dollars == "shell" and not quoted)):
        return Word(_joined(pieces, "$" + bare[1]), word.start, word.end, word.line, splits=bare[1])
    return Word(tuple(_dollars(pieces, dialect)), word.start, word.end, word.line)


def _joined(pieces: Sequence[Piece], reference: str) -> tuple[Piece, ...]:
    """Several pieces as the one reference they form."""
    text = "".join(piece.text for piece in pieces)
    return (Piece(text, pieces[0].start, pieces[-1].end, pieces[0].quote, reference),)


def _specifiers(pieces: Sequence[Piece]) -> list[Piece]:
    found: list[Piece] = []
    index = 0
    while index < len(pieces):
        pair = pieces[index : index + 2]
        if len(pair) == 2 and pair[0].text == "%" and (pair[1].text == "%" or pair[1].text.isalpha()):
            if pair[1].text == "%":
                found.append(Piece("%", pair[0].start, pair[1].end, pair[0].quote))
            else:
                found += _joined(pair, "%" + pair[1].text)
            index += 2
        else:
            found.append(pieces[index])
            index += 1
    return found


def _dollars(pieces: Sequence[Piece], dialect: Dialect) -> list[Piece]:
    found: list[Piece] = []
    index = 0
    while index < len(pieces):
        piece, rest = pieces[index], pieces[index : index + 200]
        length, reference = 1, ""
        if piece.text == "$" and not piece.reference and not (dialect.dollars == "shell" and piece.quote == "'"):
            # One piece is one character here, references excepted; those end the text looked at.
            text = "".join(part.text if len(part.text) == 1 else "\n" for part in rest)
            length, reference = _dollar(text, dialect)
        if reference:
            found += _joined(rest[:length], reference)
        elif length == 2:
            found.append(Piece("$", piece.start, rest[1].end, piece.quote))
        else:
            found.append(piece)
        index += length
    return found


def _dollar(text: str, dialect: Dialect) -> tuple[int, str]:
    """How many characters a dollar at the start of the text takes, and the reference they form, if any."""
    if text.startswith("$$") and dialect.dollars in ("systemd", "compose"):
        return 2, ""
    match = _BRACED.match(text)
    if not match and dialect.dollars in ("shell", "compose"):
        match = _NAME.match(text)
    if not match:
        return 1, ""
    name = re.match(r"[A-Za-z_][A-Za-z0-9_]*", match[1])
    return match.end(), "$" + (name.group() if name else match[1])
