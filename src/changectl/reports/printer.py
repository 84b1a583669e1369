"""The one place that writes to a terminal. Foreign text (names, values, log lines) can neither style nor steer it.

Rich is only loaded where a terminal is really there; everywhere else lines are plain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from shutil import get_terminal_size
from typing import TYPE_CHECKING, TextIO

from changectl.reports._safe import safe
from changectl.reports._tables import drawn, hang, records, widths

if TYPE_CHECKING:
    from rich.console import Console


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
        given = widths(columns, texts, self.columns)
        if given is None:
            lines = records(columns, texts, self.columns)
        else:
            head, *lines = drawn(columns, texts, given)
            self._write(self.out, head, "bold")
        for line in lines:
            self.out.write(line + "\n")

    def paragraph(self, text: object, *, style: str | None = None, first: str = "") -> None:
        """Text of the result: on a terminal folded between words. `first` stands before it, and nothing below that."""
        clean = self._safe(text, self.out, lines=True)
        lines = hang(first, clean, self.columns) if self._is_terminal(self.out) else [first + clean]
        self._write(self.out, "\n".join(lines), style)

    @property
    def on_terminal(self) -> bool:
        """Whether the result goes to a terminal."""
        return self._is_terminal(self.out)

    @property
    def columns(self) -> int:
        """How many characters a line of the terminal has room for."""
        return self.width or get_terminal_size().columns

    def _write(self, stream: TextIO, text: object, style: str | None) -> None:
        encoding = getattr(stream, "encoding", None)
        content = safe(text, encoding=encoding)
        if style is None or not self._is_terminal(stream):
            stream.write(content + "\n")
            return
        from rich.text import Text

        self._console(stream).print(Text(content, style=style), soft_wrap=True)

    def _safe(self, text: object, stream: TextIO, *, lines: bool = False) -> str:
        return safe(text, lines=lines, encoding=getattr(stream, "encoding", None))

    def _is_terminal(self, stream: TextIO) -> bool:
        return stream.isatty() if self.terminal is None else self.terminal

    def _console(self, stream: TextIO) -> Console:
        from rich.console import Console

        # Rich itself honours NO_COLOR and TERM=dumb.
        return Console(file=stream, width=self.width, markup=False, highlight=False, emoji=False)
