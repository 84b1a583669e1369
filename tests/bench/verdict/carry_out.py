"""Carry out the trials of cells on two processors; in whatever order, for each trial has a seed of its own."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from multiprocessing import get_context

import numpy as np
from tests.bench.verdict import one_long, trial
from tests.bench.verdict.cells import SEED, Cell, Floor
from tests.bench.verdict.rivals import RIVALS, first_pair
from tests.bench.verdict.service import Shape
from tests.bench.verdict.worlds import World

from changectl.core.measuring.proportions import Count, lower, upper
from changectl.core.trial.noise_model import NoiseModel

CALIBRATIONS = 40  # of each host, in turn: a single lucky one must not stand for all
ONE_LONG = "one long A, one long B"
AT_ONCE = 20  # trials of one piece of work


@dataclass
class Tally:
    """What came of the trials of one cell.

    Attributes:
        trials: that were carried out.
        verdicts: how many of each.
        kept: in how many the change stays.
        pairs: all that were run.
        minutes: that they took, by the clock of the simulated service.
        latest: the most that one trial took after the change, as a share of the longest time of its effort.
        rivals: rival -> what it said; "all phases" after a comma: with the whole trial's records.
        places: which figures decided, or were open.
    """

    trials: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    kept: int = 0
    pairs: float = 0.0
    minutes: float = 0.0
    latest: float = 0.0
    rivals: dict[str, Counter[str]] = field(default_factory=dict)
    places: Counter[str] = field(default_factory=Counter)

    def add(self, other: Tally) -> None:
        """And those of another piece of the same cell."""
        self.trials += other.trials
        self.verdicts += other.verdicts
        self.kept += other.kept
        self.pairs += other.pairs
        self.minutes += other.minutes
        self.latest = max(self.latest, other.latest)
        self.places += other.places
        for name, said in other.rivals.items():
            self.rivals.setdefault(name, Counter()).update(said)

    def count(self, floor: Floor) -> int:
        """In how many trials that came which the floor is about."""
        return self.kept if floor.what == "kept" else self.verdicts[floor.what]

    def holds(self, floor: Floor) -> bool:
        """Whether the cell holds its floor; nothing tried holds none."""
        return bool(self.trials) and floor.holds(self.count(floor), self.trials)

    def interval(self, count: int) -> tuple[float, float]:
        """The two-sided 95 % interval of a share (Clopper and Pearson)."""
        seen = Count(count, self.trials)
        return lower(seen, 0.025), upper(seen, 0.025)


@lru_cache(maxsize=2000)
def calibration(world: World, shape: Shape, number: int, *, learned: bool = False) -> NoiseModel:
    """One of the calibrations of a host, or what some earlier trials tell of it."""
    chance = np.random.default_rng([SEED, zlib.crc32(f"{world} {shape.name} {learned}".encode()), number])
    return (trial.learned if learned else trial.calibrated)(world, shape, chance)


def calm(world: World) -> World:
    """The host on the day of its calibration: what it is like at each start, and nothing drifted, stepped or failed."""
    return World(
        "calm", world.phase, world.round, world.rho, world.correlation,
        restart=world.restart, bimodal=world.bimodal, spikes=world.spikes,
    )  # fmt: skip


def piece(work: tuple[Cell, range, int]) -> Tally:
    """Some trials of a cell, with so many calibrations of its host in turn."""
    cell, numbers, calibrations = work
    found = Tally()
    for number in numbers:
        noise = NoiseModel()
        if cell.known:
            noise = calibration(calm(cell.world), cell.shape, number % calibrations, learned=cell.learned)
        chance = np.random.default_rng([*cell.seed, 0, number])
        ended = trial.run(
            cell.world, cell.shape, cell.effect, chance,
            pairs=cell.pairs, noise=noise, expect=cell.expect, whole=cell.rivals,
        )  # fmt: skip
        found.add(_tallied(ended))
        if cell.rivals:
            long = one_long.judged(
                cell.world, cell.shape, cell.effect, np.random.default_rng([*cell.seed, 2, number]), noise
            )
            said = {ONE_LONG: long, **_said(ended)}
            found.add(Tally(rivals={name: Counter({word: 1}) for name, word in said.items()}))
    return found


def _tallied(ended: trial.Ended) -> Tally:
    minutes = ended.seconds / 60
    verdicts, places = Counter({ended.verdict: 1}), Counter(ended.places)
    return Tally(1, verdicts, int(ended.kept), ended.pairs, minutes, ended.after_change, places=places)


def _said(ended: trial.Ended) -> dict[str, str]:
    said: dict[str, str] = {}
    for name, rival in RIVALS.items():
        said[name] = rival(first_pair(ended.records))
        said[f"{name}, all phases"] = rival(ended.records)
    return said


def carried_out(
    cells: Sequence[Cell],
    *,
    share: float = 1.0,
    processes: int = 2,
    calibrations: int = CALIBRATIONS,
    told: bool = False,
) -> list[Tally]:
    """The tallies of all cells, in their order.

    Args:
        cells: what to try.
        share: of each cell's trials; at least one piece of each is carried out.
        processes: how many at a time.
        calibrations: of each host.
        told: whether to print each cell when it is done.
    """
    works = [
        (index, (cell, range(begin, min(begin + AT_ONCE, number)), calibrations))
        for index, cell in enumerate(cells)
        for number in [max(1, round(cell.trials * share))]
        for begin in range(0, number, AT_ONCE)
    ]
    tallies = [Tally() for _ in cells]
    left = Counter(index for index, _ in works)
    begun = time.monotonic()
    for index, found in _each(works, processes):
        tallies[index].add(found)
        left[index] -= 1
        if told and not left[index]:
            said = f"{time.monotonic() - begun:6.0f} s  {cells[index].name}: {dict(tallies[index].verdicts)}"
            print(said, flush=True)  # noqa: T201
    return tallies


def _each(works: Sequence[tuple[int, tuple[Cell, range, int]]], processes: int) -> Iterable[tuple[int, Tally]]:
    if processes < 2:
        yield from ((index, piece(work)) for index, work in works)
        return
    with get_context("fork").Pool(processes) as pool:
        yield from pool.imap(_numbered, works)


def _numbered(work: tuple[int, tuple[Cell, range, int]]) -> tuple[int, Tally]:
    return work[0], piece(work[1])
