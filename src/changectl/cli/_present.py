"""Prints a report: its blocks through the safe printer, or its document as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from changectl.reports._blocks import Block, Command, Facts, Heading, Line, Table, Tone, Verbatim
from changectl.reports._safe import safe
from changectl.reports.printer import Printer

_STYLES: Mapping[Tone, str | None] = {
    "plain": None,
    "good": "green",
    "bad": "bold red",
    "warning": "yellow",
    "quiet": "dim",
}
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def print_blocks(blocks: Sequence[Block], printer: Printer) -> None:
    """Print them one below the other, headings set off by an empty line."""
    for index, block in enumerate(blocks):
        if isinstance(block, Heading):
            if index:
                printer.line()
            printer.paragraph(block.text, style="bold" if block.level < 3 else "underline")
        elif isinstance(block, Line):
            _line(block.text, block.tone, printer)
        elif isinstance(block, Command):
            if block.purpose:
                _line(f"{block.purpose}:", block.tone, printer)
            printer.line(f"  {safe(block.text, lines=False)}")  # never folded: half a command is another command
        elif isinstance(block, Facts):
            width = max((len(name) for name, _ in block.pairs), default=0)
            for name, value in block.pairs:
                printer.paragraph(value, first=f"{name:<{width}}  ")
        elif isinstance(block, Table):
            printer.table(block.headings, block.rows)
        elif isinstance(block, Verbatim):
            for line in block.text.removesuffix("\n").split("\n"):
                printer.line(line, style=_DIFF_STYLES.get(line[:1]))


def _line(text: str, tone: Tone, printer: Printer) -> None:
    mark = "- " if text.startswith("- ") else ""
    printer.paragraph(text.removeprefix(mark), style=_STYLES[tone], first=mark)


def print_document(document: Mapping[str, Any], printer: Printer, exit_code: int = 0) -> None:
    """One JSON document in ASCII: what foreign text does to terminals stays escaped."""
    printer.line(json.dumps({**document, "exit_code": exit_code}, indent=2, ensure_ascii=True, allow_nan=False))
