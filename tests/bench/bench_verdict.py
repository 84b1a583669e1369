"""How often the verdict is right: request records of simulated hosts, through the shipped reader, gates and judge.

`make bench-verdict` carries out every cell (see `tests/bench/verdict/cells.py`) and takes about two hours on two cores.
It prints the tables and writes them to `build/bench-verdict.md`. CHANGECTL_BENCH_SHARE=0.02 tries a part of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench.table import Row
from tests.bench.verdict import tables
from tests.bench.verdict.carry_out import Tally, carried_out
from tests.bench.verdict.cells import Cell, Floor, every

WRITTEN = Path("build/bench-verdict.md")


def rows(tried: Sequence[tuple[Cell, Tally]]) -> Iterator[Row]:
    """One row for each floor; what has to be at least so much is shown by what it leaves."""
    for cell, tally in tried:
        cost = (
            f"{tally.trials} trials, {tally.pairs / tally.trials:.1f} pairs, {tally.minutes / tally.trials:.0f} minutes"
        )
        for floor in cell.floors:
            yield Row("verdict", cell.name, str(floor), *_at_most(floor, tally), unit="%", note=f"{cell.name}: {cost}")
        if cell.within is not None:
            what = "over, after the change, within a share of the longest time"
            yield Row("verdict", cell.name, what, 100 * tally.latest, 100 * cell.within, unit="%")


def _at_most(floor: Floor, tally: Tally) -> tuple[float, float]:
    figure, limit = 100 * floor.figure(tally.count(floor), tally.trials), 100 * floor.share
    return (figure, limit) if floor.sign == "<=" else (100 - figure, 100 - limit)


def text(tried: Sequence[tuple[Cell, Tally]]) -> str:
    """All tables."""
    parts = ["# Floors", tables.floors(tried), "# Verdicts, in percent", tables.verdicts(tried)]
    head = "# Called regressed, in percent (undecided)"
    return "\n\n".join([*parts, head, tables.rivals(tried)]) + "\n"


def run() -> list[Row]:
    """One row for each floor; the tables are printed and written on the way."""
    cells, share = every(), float(os.environ.get("CHANGECTL_BENCH_SHARE", "1"))
    tried = list(zip(cells, carried_out(cells, share=share, told=True), strict=True))
    said = text(tried)
    sys.stdout.write(said)
    WRITTEN.parent.mkdir(exist_ok=True)
    WRITTEN.write_text(said, encoding="utf-8")
    return list(rows(tried))
