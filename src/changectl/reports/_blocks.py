"""The pieces that a report is made of. They hold foreign text as it is: whoever prints them makes it harmless."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "bad", "warning", "quiet"]


@dataclass(frozen=True, slots=True)
class Heading:
    """The title of what follows; level 1 is the report's own."""

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one pair a line."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Text whose line breaks and blanks matter: a diff."""

    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """What a person copies into a shell: whole, on a line of its own below what it is for, with nothing beside it."""

    text: str
    purpose: str = ""  # "": said by the block before
    tone: Tone = "plain"  # of the purpose


Block = Heading | Line | Facts | Table | Verbatim | Command
