"""How a table fits a terminal: which columns stay whole, and when rows are better told one below the other."""

from __future__ import annotations

from collections.abc import Sequence

NAME = 40  # characters; the first column names the row, is copied into the next command, and is never broken up to here
SHORT = 24  # characters; a column of cells up to here stays whole where there is room
LEAST = 12  # characters that any column needs to be read
GAP = 3  # characters between two columns


def whole_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[bool] | None:
    """Which columns of a table are not broken over lines; None: the table is too wide to be read as one.

    Args:
        columns: the headings.
        rows: the cells of each row.
        width: the terminal's, in characters.
    """
    longest = [max(map(len, cells)) for cells in zip(columns, *rows, strict=True)]
    least = [min(length, NAME if index == 0 else LEAST) for index, length in enumerate(longest)]
    spare = width - GAP * (len(columns) - 1) - sum(least)
    if spare < 0:
        return None
    whole = [longest[0] <= NAME]
    for length, needed in zip(longest[1:], least[1:], strict=True):
        fits = length <= SHORT and length - needed <= spare
        spare -= length - needed if fits else 0
        whole.append(fits)
    return whole


def records(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows one below the other: the first cell, and below it a line for each other cell that holds something."""
    width = max(map(len, columns[1:]), default=0)
    lines = []
    for row in rows:
        lines.append(row[0])
        lines += [f"  {name:<{width}}  {cell}" for name, cell in zip(columns[1:], row[1:], strict=True) if cell]
    return lines
