"""What a bench says: one row per floor, and how rows are shown."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One floor and how far we are from it.

    Attributes:
        bench: the bench's name.
        what: what was measured.
        floor: the floor in words.
        ours: our figure, with `unit`.
        limit: the figure that ours must not exceed.
        rival: the figure ours is compared with; None: the floor is absolute.
        unit: of all figures.
        note: how it was measured in this run.
    """

    bench: str
    what: str
    floor: str
    ours: float
    limit: float
    rival: float | None = None
    unit: str = "s"
    note: str = ""

    @property
    def held(self) -> bool:
        """Whether the floor is held; a figure that is no number never is."""
        return self.ours <= self.limit

    @property
    def ratio(self) -> float | None:
        """Ours by the rival's; None without a rival."""
        return self.ours / self.rival if self.rival else None

    def cells(self) -> list[str]:
        """As the table shows it."""
        return [
            self.bench,
            self.what,
            self.floor,
            _figure(self.ours, self.unit),
            _figure(self.limit, self.unit),
            "" if self.rival is None else _figure(self.rival, self.unit),
            "" if self.ratio is None else f"{self.ratio:.2f}",
            "pass" if self.held else "FAIL",
        ]


HEAD = ["bench", "what", "floor", "ours", "at most", "rival", "ratio", ""]


def machine() -> str:
    """What of the machine a reader needs in order to compare figures."""
    return f"{len(os.sched_getaffinity(0))} cores, load average {os.getloadavg()[0]:.1f}"


def table(rows: Sequence[Row], failed: Iterable[str] = ()) -> str:
    """All rows in one table; `failed` are sentences about benches that did not come to a figure."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    notes = [f"{row.bench}: {row.note}" for row in rows if row.note]
    return "\n".join([*shown, *dict.fromkeys(notes), *failed])


def _figure(value: float, unit: str) -> str:
    digits = 1 if unit == "MB" else 3
    return f"{value:.{digits}f} {unit}".rstrip()
