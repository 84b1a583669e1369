"""How text fits a terminal: where lines are folded, how wide columns are, and when rows are told one below the other.

Names, digests and runs are never broken: they are copied into the next command, and compared.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

NAME = 40  # characters; the first column names the row and is never broken up to here
LEAST = 12  # characters that a column of longer text needs to be read
GAP = 2  # characters between two columns
_SOFT = re.compile(r"(?<=[/,;])(?=[^\W\d])")  # inside a path or a list, never inside RUN/STEP


def cells(text: str) -> int:
    """How many places of a terminal a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def fold(text: str, width: int) -> list[str]:
    """The lines of one line of text: broken at blanks, a long path or list also after its separators, nowhere else."""
    lines: list[str] = []
    line: str | None = None
    for word in text.split(" "):
        parts = [word] if cells(word) <= width else _SOFT.split(word)
        for number, part in enumerate(parts):
            glue = "" if number or line is None else " "
            if line is not None and cells(line + glue + part) > width:
                lines.append(line.rstrip())
                line = part
            else:
                line = (line or "") + glue + part
    return [*lines, line or ""]


def hang(first: str, text: str, width: int) -> list[str]:
    """Text beside its name: what is folded stands below the text, not below the name."""
    indent = cells(first)
    folded = [part for line in text.split("\n") for part in fold(line, max(width - indent, LEAST))]
    return [(first if number == 0 else " " * indent) + line for number, line in enumerate(folded)]


def widths(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """How wide each column is; None: nothing sensible fits, and the rows are better told one below the other.

    Args:
        columns: the headings.
        rows: the cells of each row.
        width: the terminal's, in characters.
    """
    longest, least = [], []
    for index, texts in enumerate(zip(columns, *rows, strict=True)):
        longest.append(max(map(cells, texts)))
        parts = max(cells(part) for text in texts for word in text.split(" ") for part in _SOFT.split(word))
        needed = max(parts, min(longest[-1], LEAST))
        least.append(max(needed, longest[-1]) if index == 0 and longest[-1] <= NAME else needed)
    spare = width - GAP * (len(columns) - 1) - sum(least)
    if spare < 0:
        return None
    found = list(least)
    by_need = sorted(range(len(columns)), key=lambda index: longest[index] - least[index])
    for place, index in enumerate(by_need):
        given = min(longest[index] - least[index], spare // (len(columns) - place))
        found[index] += given
        spare -= given
    return found


def drawn(columns: Sequence[str], rows: Sequence[Sequence[str]], given: Sequence[int]) -> list[str]:
    """The table's lines, the first two of which are its head."""
    lines = [_side_by_side(columns, given), "-" * (sum(given) + GAP * (len(given) - 1))]
    for row in rows:
        folded = [fold(cell, width) for cell, width in zip(row, given, strict=True)]
        lines += [_side_by_side(parts, given) for parts in zip_longest(*folded, fillvalue="")]
    return lines


def _side_by_side(parts: Sequence[str], given: Sequence[int]) -> str:
    padded = [part + " " * (width - cells(part)) for part, width in zip(parts, given, strict=True)]
    return (" " * GAP).join(padded).rstrip()


def records(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """The rows one below the other: the first cell, and below it a line for each other cell that holds something."""
    longest = max(map(cells, columns[1:]), default=0)
    lines = []
    for row in rows:
        lines.append(row[0])
        for name, cell in zip(columns[1:], row[1:], strict=True):
            if cell:
                lines += hang(f"  {name}{' ' * (longest - cells(name))}  ", cell, width)
    return lines
