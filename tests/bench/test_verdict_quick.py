"""The proof of the verdict, shortened for CI: the same cells, seeds and floors, fewer trials (see `bench_verdict`).

So few cannot show a floor of one per cent; they show one that broke. What each cell may miss by is what chance allows
at its floor: the count that a cell which just holds it exceeds once in a thousand times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from scipy.stats import binom
from tests.bench import bench_verdict
from tests.bench.verdict.carry_out import Tally, carried_out
from tests.bench.verdict.cells import Cell, Floor, every

TRIALS = 50
FEWER = {"traps": 8, "gross": 8}
CALIBRATIONS = 5
CHANCE = 0.001
Tried = Sequence[tuple[Cell, Tally]]


def shortened() -> list[Cell]:
    """The cells that carry a floor; without rivals, for what they say is no floor of ours."""
    return [
        replace(cell, trials=FEWER.get(cell.group, TRIALS), rivals=False)
        for cell in every()
        if cell.floors and cell.world.name != "shared"
    ]


@pytest.fixture(scope="module")
def tried() -> Tried:
    cells = shortened()
    return list(zip(cells, carried_out(cells, calibrations=CALIBRATIONS), strict=True))


def broken(floor: Floor, count: int, trials: int) -> bool:
    """Whether a cell that just holds its floor would hardly ever be seen like that."""
    if floor.sign == "<=":
        return count > 0 and bool(binom.sf(count - 1, trials, floor.share) < CHANCE)
    return bool(binom.cdf(count, trials, floor.share) < CHANCE)


def test_no_floor_of_the_verdict_is_broken(tried: Tried) -> None:
    found = [
        f"{cell.name}: {floor}: {tally.count(floor)} of {tally.trials}: {dict(tally.verdicts)}"
        for cell, tally in tried
        for floor in cell.floors
        if broken(floor, tally.count(floor), tally.trials)
    ]
    assert not found, "\n".join(found)


def test_all_harmless_changes_together_are_hardly_ever_called_harmful(tried: Tried) -> None:
    harmless = [tally for cell, tally in tried if cell.group == "no change"]
    trials, regressed = sum(one.trials for one in harmless), sum(one.verdicts["regressed"] for one in harmless)
    assert trials >= 8 * TRIALS
    assert not broken(Floor("regressed", "<=", 0.01), regressed, trials)


def test_the_tables_show_every_cell_with_its_counts(tried: Tried) -> None:
    shown = bench_verdict.text(tried)
    assert all(cell.name in shown for cell, _ in tried)
    rows = list(bench_verdict.rows(tried))
    assert len(rows) == sum(len(cell.floors) + (cell.within is not None) for cell, _ in tried)
    never = [row for row in rows if row.floor == "improved <= 0 %"]
    assert never
    assert all(row.held for row in never)


@pytest.mark.parametrize(
    ("floor", "count", "expected"),
    [
        (Floor("regressed", "<=", 0.01), 0, False),
        (Floor("regressed", "<=", 0.01), 5, True),
        (Floor("improved", "<=", 0.0), 1, True),
        (Floor("regressed", ">=", 0.95), 48, False),
        (Floor("regressed", ">=", 0.95), 38, True),
    ],
)
def test_a_floor_that_broke_is_told_from_chance(floor: Floor, count: int, expected: bool) -> None:
    assert broken(floor, count, TRIALS) is expected


def test_a_floor_with_a_bound_asks_for_enough_trials() -> None:
    floor = Floor("regressed", "<=", 0.01, bound=True)
    assert not floor.holds(0, 200)  # the bound of none of 200 is 1.5 %
    assert floor.holds(0, 300)
    assert floor.holds(12, 2000)
    assert not floor.holds(14, 2000)
