"""Two command lines of one service compared word by word, and when the first word may be spelt otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import PurePosixPath


@dataclass(frozen=True, slots=True)
class Argument:
    """One word that is not the same: where it stands in the command line of before and in that of after; None: not."""

    before: int | None
    after: int | None

    @property
    def name(self) -> str:
        """Which one, counted from the program itself."""
        return f"argument {self.after if self.before is None else self.before}"


def different_arguments(before: Sequence[str], after: Sequence[str], *, same_program: bool) -> list[Argument]:
    """The words that differ; a word that was put in or taken out does not make those behind it differ.

    A start script or a shim (pyenv, conda, asdf) may call one and the same program with its folder or without it: that
    is no difference, unless the last part is another one too, which tells some programs what to do.

    Args:
        before: one command line.
        after: the other one.
        same_program: whether both are known to run the very same file.
    """
    first = 1 if same_program and spelt_otherwise(before, after) else 0
    words = SequenceMatcher(None, list(before[first:]), list(after[first:]), autojunk=False)
    found = []
    for tag, begin, end, other_begin, other_end in words.get_opcodes():
        if tag != "equal":
            places = zip_longest(range(first + begin, first + end), range(first + other_begin, first + other_end))
            found += [Argument(one, other) for one, other in places]
    return found


def spelt_otherwise(before: Sequence[str], after: Sequence[str]) -> bool:
    """Whether the first words differ, and only in the folder that they name."""
    if not before or not after or before[0] == after[0]:
        return False
    names = {PurePosixPath(words[0]).name for words in (before, after)}
    return len(names) == 1 and names != {""}


def quoted(word: str) -> str:
    """A word in a sentence."""
    return json.dumps(word, ensure_ascii=False)
