"""Blocks as plain lines, for the tests of reports."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.reports._blocks import Block, Command, Facts, Heading, Line, Table, Verbatim


def lines(blocks: Sequence[Block]) -> list[str]:
    """The blocks as text, one entry a line; cells and pairs with one blank between."""
    found: list[str] = []
    for block in blocks:
        if isinstance(block, Line | Heading):
            found.append(block.text)
        elif isinstance(block, Command):
            found.append(f"{block.purpose}: {block.text}" if block.purpose else block.text)
        elif isinstance(block, Facts):
            found += [f"{name}: {value}" for name, value in block.pairs]
        elif isinstance(block, Table):
            found += [" | ".join(cells) for cells in block.rows]
        elif isinstance(block, Verbatim):
            found += block.text.splitlines()
    return found
