"""The words of a command line: how they are written in each place, and where every decoded character stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Dollars = Literal["systemd", "literal", "shell", "compose"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How words are written in one place."""

    c_escapes: bool  # systemd's escapes (`\\x20`) instead of the shell's
    specifiers: bool  # `%i` is replaced by systemd, `%%` is a percent sign
    dollars: Dollars  # what `$` means


UNIT = Dialect(c_escapes=True, specifiers=True, dollars="systemd")
UNIT_NO_VARIABLES = Dialect(c_escapes=True, specifiers=True, dollars="literal")
SHELL = Dialect(c_escapes=False, specifiers=False, dollars="shell")
SPLIT = Dialect(c_escapes=False, specifiers=False, dollars="literal")
COMPOSE = Dialect(c_escapes=False, specifiers=False, dollars="compose")


@dataclass(frozen=True, slots=True)
class Piece:
    """One decoded character (or one unresolved reference) and its place in the file."""

    text: str
    start: int
    end: int
    quote: str = ""  # the quote around it: "", "'" or '"'
    reference: str = ""  # "$NAME" or "%i": only known on the host; empty: an ordinary character


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command line."""

    pieces: tuple[Piece, ...]
    start: int
    end: int
    line: int
    splits: str = ""  # the variable that stands for any number of words here: "ARGS" for a bare $ARGS

    @property
    def value(self) -> str:
        """The decoded text; references stand in it as written."""
        return "".join(piece.text for piece in self.pieces)

    def pieces_from(self, offset: int) -> tuple[Piece, ...]:
        """The pieces whose decoded text starts at or after an offset in `value`."""
        taken, position = [], 0
        for piece in self.pieces:
            if position >= offset:
                taken.append(piece)
            position += len(piece.text)
        return tuple(taken)

    def references_from(self, offset: int) -> tuple[str, ...]:
        """References (`$NAME`, `%i`) in the decoded text from an offset on."""
        return tuple(piece.reference for piece in self.pieces_from(offset) if piece.reference)
