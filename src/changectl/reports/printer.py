"""The one place that writes to a terminal. Foreign text (names, values, log lines) can neither style nor steer it.

Rich is only loaded where a terminal is really there; everywhere else lines are plain.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from changectl.reports._tables import records, whole_columns

if TYPE_CHECKING:
    from rich.console import Console

# Characters that change the order or the look of the text around them, or hide: bidirectional controls, zero-width
# characters, line and paragraph separators, interlinear marks.
_FORMATTING = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def safe(text: object, *, lines: bool = True, encoding: str | None = None) -> str:
    """Text in which every control, formatting and unassigned character is written as an escape.

    Args:
        text: anything; its `str` is taken.
        lines: whether line breaks stay.
        encoding: of the stream; what it cannot carry is escaped, too.
    """
    raw = str(text)
    if raw.isascii() and raw.isprintable():
        return raw
    escaped = "".join(_escape(character, keep_lines=lines) for character in raw)
    return escaped.encode(encoding, "backslashreplace").decode(encoding) if encoding else escaped


def _escape(character: str, *, keep_lines: bool) -> str:
    if character == "\n" and keep_lines:
        return character
    if unicodedata.category(character) not in _FORMATTING:
        return character
    code = ord(character)
    if code < 0x100:
        return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


@dataclass(frozen=True, slots=True)
class Printer:
    """Results on `out`, everything else on `err`."""

    out: TextIO = field(default_factory=lambda: sys.stdout)
    err: TextIO = field(default_factory=lambda: sys.stderr)
    terminal: bool | None = None  # None: ask the stream
    width: int | None = None  # None: the terminal's

    def line(self, text: object = "", *, style: str | None = None) -> None:
        """One or more lines of the result; `style` (rich's words) counts only on a terminal."""
        self._write(self.out, text, style)

    def note(self, text: object, *, style: str | None = None) -> None:
        """What is not a result: progress, warnings, errors."""
        self._write(self.err, text, style)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Rows under columns: drawn on a terminal that is wide enough, tab-separated lines with a header elsewhere."""
        texts = [[self._safe(cell, self.out) for cell in row] for row in rows]
        if not self._is_terminal(self.out):
            for cells in (list(columns), *texts):
                self.out.write("\t".join(cells) + "\n")
            return
        console = self._console(self.out)
        whole = whole_columns(columns, texts, console.width)
        if whole is None:
            for line in records(columns, texts):
                self.out.write(line + "\n")
            return
        from rich.box import SIMPLE
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE, show_edge=False, pad_edge=False)
        for column, unbroken in zip(columns, whole, strict=True):
            table.add_column(Text(column), overflow="fold", no_wrap=unbroken)
        for cells in texts:
            table.add_row(*(Text(cell) for cell in cells))
        console.print(table)

    def _write(self, stream: TextIO, text: object, style: str | None) -> None:
        encoding = getattr(stream, "encoding", None)
        content = safe(text, encoding=encoding)
        if style is None or not self._is_terminal(stream):
            stream.write(content + "\n")
            return
        from rich.text import Text

        self._console(stream).print(Text(content, style=style), soft_wrap=True)

    def _safe(self, cell: object, stream: TextIO) -> str:
        return safe(cell, lines=False, encoding=getattr(stream, "encoding", None))

    def _is_terminal(self, stream: TextIO) -> bool:
        return stream.isatty() if self.terminal is None else self.terminal

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        # Rich itself honours NO_COLOR and TERM=dumb.
        return Console(file=stream, width=self.width, markup=False, highlight=False, emoji=False)
