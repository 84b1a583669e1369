"""Splits a command line into words and remembers for every decoded character where it stands in the file.

Systemd's dialect (unit files), the shell's (argument files), and plain splitting (variables, docker compose). None of
them is the standard library's `shlex`, which keeps no offsets.
"""

from __future__ import annotations

import re

from changectl.formats._pieces import Dialect, Piece, Word
from changectl.formats._references import with_references
from changectl.formats._text import line_of, refuse

_CONTINUATION = re.compile(r"\\\r?\n(?:[ \t]*[#;][^\n]*(?:\n|$))*")
_JOINT = re.compile(r"\\\r?\n")
_C_ESCAPE = re.compile(
    r"\\(?:x(?P<hex>[0-9a-fA-F]{2})|u(?P<u4>[0-9a-fA-F]{4})|U(?P<u8>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})"
    r"|(?P<one>[abfnrtvs\\\"']))"
)
_ONE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "s": " "}
_SHELL_SYNTAX = "|&;<>()`"


def split(text: str, start: int, end: int, dialect: Dialect) -> list[Word]:
    """The words of `text[start:end]`.

    Raises:
        EditRefused: an open quote, an unknown escape, or shell syntax that is more than words.
    """
    return _Splitter(text, start, end, dialect).words()


class _Splitter:
    def __init__(self, text: str, start: int, end: int, dialect: Dialect) -> None:
        self.text, self.position, self.end, self.dialect = text, start, end, dialect

    def words(self) -> list[Word]:
        found = []
        while self._skip_blank():
            word = self._word()
            found.append(with_references(word, self.dialect))
        return found

    def _here(self, length: int = 1) -> str:
        return self.text[self.position : min(self.position + length, self.end)]

    def _joint(self) -> re.Match[str] | None:
        """A continuation at the current position: backslash, newline, and in units the comment lines after it."""
        joint = _CONTINUATION if self.dialect.c_escapes else _JOINT
        return joint.match(self.text, self.position, self.end)

    def _skip_blank(self) -> bool:
        """Move to the next word; False at the end."""
        while self.position < self.end:
            joint = self._joint()
            if joint:
                self.position = joint.end()
            elif self._here() in " \t\r\n":
                self.position += 1
            elif self._here() == "#" and self.dialect.dollars == "shell":
                stop = self.text.find("\n", self.position, self.end)
                self.position = self.end if stop < 0 else stop
            else:
                return True
        return False

    def _word(self) -> Word:
        start, quote, opened = self.position, "", 0
        pieces: list[Piece] = []
        while self.position < self.end:
            char, joint = self._here(), self._joint()
            if joint and not quote and self.dialect.c_escapes:
                break
            if joint:
                if self.dialect.c_escapes:
                    pieces.append(Piece(" ", self.position, joint.end(), quote))
                self.position = joint.end()
            elif not quote and char in " \t\r\n":
                break
            elif char in "'\"" and quote in ("", char):
                quote, opened = ("", 0) if quote else (char, self.position)
                self.position += 1
            else:
                self._refuse_shell_syntax(char, quote)
                pieces.append(self._piece(quote))
                self.position = pieces[-1].end
        if quote:
            refuse(f"a quote ({quote}) is opened and never closed", line_of(self.text, opened))
        return Word(tuple(pieces), start, self.position, line_of(self.text, start))

    def _refuse_shell_syntax(self, char: str, quote: str) -> None:
        if self.dialect.c_escapes or quote:
            shell = self.dialect.dollars == "shell" and quote == '"' and (char == "`" or self._here(2) == "$(")
        else:
            shell = char in _SHELL_SYNTAX or self._here(2) == "$("
        if shell:
            refuse(
                f"{char!r} is shell syntax beyond plain words; a pattern carrier can edit this file",
                line_of(self.text, self.position),
            )

    def _piece(self, quote: str) -> Piece:
        """One character, with its escape."""
        char = self._here()
        if char != "\\":
            return Piece(char, self.position, self.position + 1, quote)
        if self.dialect.c_escapes:
            return self._c_escape(quote)
        following = self._here(2)[1:]
        if quote == "'" or not following or (quote == '"' and following not in '$`"\\'):
            return Piece("\\", self.position, self.position + 1, quote)
        # An escaped dollar is a dollar and nothing else: quoted like a single-quoted one.
        return Piece(following, self.position, self.position + 2, "'" if following == "$" else quote)

    def _c_escape(self, quote: str) -> Piece:
        found = _C_ESCAPE.match(self.text, self.position, self.end)
        if not found:
            if self._here(2) == "\\;":
                return Piece(";", self.position, self.position + 2, quote)
            refuse(f"the escape {self._here(2)!r} is unknown to systemd", line_of(self.text, self.position))
        number = found["hex"] or found["u4"] or found["u8"]
        if number:
            code = int(number, 16)
        elif found["octal"]:
            code = int(found["octal"], 8)
        else:
            return Piece(_ONE.get(found["one"], found["one"]), found.start(), found.end(), quote)
        if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            refuse(f"the escape {found.group()!r} names no character", line_of(self.text, self.position))
        return Piece(chr(code), found.start(), found.end(), quote)
