"""Pre-checks as a table; those that do not apply are only named, since they tell nothing."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.counting import counted
from changectl.reports._blocks import Block, Line, Table

Row = tuple[str, str, str, str, str]  # name, level, state as recorded, figure, detail


def prechecks(heading: str, rows: Sequence[Row]) -> list[Block]:
    """The checks that looked at something in a table, below it the names of the others.

    Args:
        heading: of the column of names.
        rows: all checks, in their order.
    """
    left = [name for name, _, state, _, _ in rows if state == "not_applicable"]
    shown = [row for row in rows if row[2] != "not_applicable"]
    # Figure and detail share a column: apart they leave no room for a table on a terminal of 80 characters.
    cells = [(name, level, state, "; ".join(filter(None, seen))) for name, level, state, *seen in shown]
    blocks: list[Block] = [Table((heading, "level", "state", "what was seen"), cells)] if cells else []
    if left:
        verb = "does" if len(left) == 1 else "do"
        blocks.append(Line(f"{counted(len(left), 'check')} {verb} not apply here: {', '.join(left)}", "quiet"))
    return blocks
