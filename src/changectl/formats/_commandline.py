"""A command line that stands in a file as text: its words can be replaced, inserted and removed as byte splices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.formats._pieces import Dialect, Word
from changectl.formats._quoting import quoted, replaced
from changectl.formats._text import line_of, newline, refuse, splice
from changectl.formats._words import split


@dataclass(frozen=True, slots=True)
class CommandLine:
    """The words of `text[start:end]`; fulfils the `Words` that options are edited through."""

    text: str
    start: int
    end: int
    dialect: Dialect
    words: Sequence[Word]

    @classmethod
    def of(cls, text: str, start: int, end: int, dialect: Dialect) -> CommandLine:
        """Split a span into words. Raises EditRefused where that is not possible without doubt."""
        return cls(text, start, end, dialect, split(text, start, end, dialect))

    def replace(self, index: int, keep: int, value: str) -> str:
        """The word at `index` becomes its first `keep` characters followed by `value`."""
        return splice(self.text, *replaced(self.words[index], keep, value, self.dialect))

    def insert(self, index: int, values: Sequence[str]) -> str:
        """New words stand before the word at `index`; on a line of their own where options have one each."""
        written = " ".join(quoted(value, self.dialect) for value in values)
        if not self.words:
            return splice(self.text, self.start, self.start, written)
        if index == 0:
            return splice(self.text, self.words[0].start, self.words[0].start, written + " ")
        position = self.words[index - 1].end
        return splice(self.text, position, position, self._separator(index) + written)

    def remove(self, first: int, last: int) -> str:
        """The words from `first` to `last` are gone, with the blanks before them."""
        if first == 0:
            stop = self.words[last + 1].start if last + 1 < len(self.words) else self.words[last].end
            return splice(self.text, self.words[0].start, stop, "")
        start = self.words[first - 1].end
        between = self.text[start : self.words[first].start]
        if "#" not in between and ";" not in between:
            return splice(self.text, start, self.words[last].end, "")
        if last + 1 == len(self.words):
            refuse("a comment stands right before the option to remove; remove both by hand", self.words[first].line)
        return splice(self.text, self.words[first].start, self.words[last + 1].start, "")

    def _separator(self, index: int) -> str:
        """What to put before new words: as the option before them, if that starts a line, else a space."""
        before = [place for place in range(1, index) if self.words[place].value.startswith("-")]
        if not before:
            return " "
        gap = self.text[self.words[before[-1] - 1].end : self.words[before[-1]].start]
        if "\n" not in gap:
            return " "
        # Comments in the gap belong to the other option: only its first line break and its indent are repeated.
        indent = gap[gap.rindex("\n") + 1 :]
        broken = re.match(r"[ \t]*\\?\r?\n", gap)
        if not broken:
            return newline(self.text) + indent
        return broken.group() + indent


def nested_line(text: str, start: int, end: int, decoded: str, dialect: Dialect) -> CommandLine:
    """The command line inside another format's value.

    Args:
        text: the whole file.
        start: where the value's text begins, inside its quotes.
        end: where it ends.
        decoded: what the outer format makes of that text.
        dialect: how the words are written.

    Raises:
        EditRefused: the outer format's escapes make the words of the raw text differ from the decoded ones, so no
            offset could be trusted.
    """
    line = CommandLine.of(text, start, end, dialect)
    inner = split(decoded, 0, len(decoded), dialect)
    if [word.value for word in line.words] != [word.value for word in inner]:
        refuse(
            "the value is written with escapes or folding that hide where its words stand; write it plainly",
            line_of(text, start),
        )
    return line
