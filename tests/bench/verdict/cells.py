"""Which worlds, changes and efforts are tried, how often, and the floors that the answers have to hold."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tests.bench.verdict.service import EIGHT, TWELVE, TWENTY_ONE, USUAL, Shape
from tests.bench.verdict.worlds import (
    CLASSES,
    MOST_DRIFT,
    NONE,
    SHARED,
    SPECIAL,
    TYPICAL,
    Effect,
    World,
)

from changectl.core.measuring.metrics import Expectation, parse_expectation
from changectl.core.measuring.proportions import Count, lower, upper
from changectl.core.trial.order import PAIRS

SEED = 20_261_130
MANY, FEW = 2000, 200  # repetitions: where a floor hangs on it, and elsewhere
TARGET = 0.05
BOUND = 0.05  # one-sided: "the upper 95 % bound"

What = Literal["regressed", "kept", "improved", "inconclusive"]


@dataclass(frozen=True)
class Floor:
    """What a cell has to hold: a share of its trials, at most or at least; `bound`: also its 95 % bound."""

    what: What
    sign: Literal["<=", ">="]
    share: float
    bound: bool = False

    def figure(self, count: int, trials: int) -> float:
        """The share that is held against the floor."""
        seen = Count(count, trials)
        if not self.bound:
            return seen.share
        return upper(seen, BOUND) if self.sign == "<=" else lower(seen, BOUND)

    def holds(self, count: int, trials: int) -> bool:
        """Whether so many of so many do."""
        figure = self.figure(count, trials)
        return figure <= self.share if self.sign == "<=" else figure >= self.share

    def __str__(self) -> str:
        words = "upper 95 % bound of " if self.bound else ""
        return f"{words}{self.what} {self.sign} {100 * self.share:g} %"


@dataclass(frozen=True)
class Cell:
    """One world, one change, one effort.

    Attributes:
        group: the table that it stands in.
        world: the host.
        effect: what the change does.
        shape: what is measured.
        effort: standard or thorough.
        known: whether the host was calibrated, on a day without drift.
        learned: whether it was known by earlier trials instead.
        floors: none: the cell only shows.
        within: the share of the effort's longest time in which a trial has to end, counted from the change on.
        gain: what the plan expects of the time to the first token; None: the change is to be neutral.
        rivals: whether rivals judge the same records.
        trials: how often.
    """

    group: str
    world: World
    effect: Effect
    shape: Shape = USUAL
    effort: str = "standard"
    known: bool = True
    learned: bool = False
    floors: tuple[Floor, ...] = ()
    within: float | None = None
    gain: float | None = None
    rivals: bool = False
    trials: int = FEW

    @property
    def name(self) -> str:
        """Unique, and where the seed comes from."""
        known = "known by trials" if self.learned else "calibrated" if self.known else "uncalibrated"
        drift = f" + drift {100 * self.world.drift:g} %" if self.world.drift and self.world.name in NAMES else ""
        alike = ", correlated" if self.world.correlation else ""
        return f"{self.effect.name}, {self.world.name}{drift}{alike}, {self.shape.name} guards, {self.effort}, {known}"

    @property
    def pairs(self) -> int:
        """At most."""
        return PAIRS[self.effort]

    @property
    def seed(self) -> tuple[int, int]:
        """Of every number in it; a trial adds its own."""
        return SEED, zlib.crc32(self.name.encode())

    @property
    def expect(self) -> Sequence[Expectation]:
        """As the plan says it."""
        return [] if self.gain is None else [parse_expectation("ttft_user_p50", f"-{100 * self.gain:g}%")]


NAMES = tuple(world.name for world in CLASSES)
EFFORT = {"quiet": "standard", "typical": "standard", "shared": "thorough"}

# A change of one stage at the level with the fewest requests: of all harm of its size the hardest to see.
FIRST = Effect("first token +10 % at one level", first=1.10, only="low")
PACE = Effect("pace +10 % at one level", pace=1.10, only="low")
ALL = Effect("everything +10 %", first=1.10, pace=1.10)
AT_MARGIN = Effect("first token +5 % at one level", first=1.05, only="low")
TAIL = Effect("5 % of the requests 3 times slower", tail=0.05)
TAIL_AT_PEAK = replace(TAIL, name="5 % of the requests 3 times slower, at the open level alone", only="peak")
GAIN = Effect("first token -10 %", first=1 - 2 * TARGET)
GROSS = Effect("everything 2 times slower", first=2.0, pace=2.0)


def floors() -> Iterator[Cell]:
    """The cells that carry a floor."""
    for world in CLASSES:
        for known in (True, False):
            for drift in (0.0, MOST_DRIFT):
                yield _harmless(world, known, drift)
            yield Cell(
                "twice the margin", world, FIRST, effort=EFFORT[world.name], known=known, trials=MANY,
                floors=(Floor("regressed", ">=", 0.95),),
            )  # fmt: skip
            yield Cell(
                "at the margin", world, AT_MARGIN, effort=EFFORT[world.name], known=known, trials=MANY,
                floors=(Floor("kept", "<=", 0.05),),
            )  # fmt: skip
    for world, effect, floor in (
        (TYPICAL, NONE, Floor("regressed", "<=", 0.02, bound=True)),
        (TYPICAL, AT_MARGIN, Floor("kept", "<=", 0.05)),
        (SHARED, NONE, Floor("regressed", "<=", 0.02, bound=True)),
        (SHARED, AT_MARGIN, Floor("kept", "<=", 0.05)),
    ):
        yield Cell(
            "known by trials", world, effect, effort=EFFORT[world.name], learned=True, floors=(floor,), trials=MANY
        )
    for known in (True, False):
        yield Cell("tail", TYPICAL, TAIL, known=known, trials=MANY, floors=(Floor("regressed", ">=", 0.90),))
        yield Cell(
            "gain", TYPICAL, GAIN, known=known, gain=TARGET, trials=MANY, floors=(Floor("improved", ">=", 0.90),)
        )


def _harmless(world: World, known: bool, drift: float) -> Cell:
    held = [Floor("regressed", "<=", 0.01 if known else 0.02, bound=True)]
    if world is TYPICAL and not drift:
        held.append(Floor("inconclusive", "<=", 0.05 if known else 0.10))
    return Cell(
        "no change", replace(world, drift=drift), NONE, effort=EFFORT[world.name], known=known, floors=tuple(held),
        trials=MANY,
    )  # fmt: skip


def guards() -> Iterator[Cell]:
    """As many guards as there may be, each with its own luck and all of one start with a common one."""
    for shape in (EIGHT, TWELVE, TWENTY_ONE, USUAL):
        for correlation in (0.0, 0.5):
            for effect in (NONE, ALL):
                yield Cell("guards", replace(TYPICAL, correlation=correlation), effect, shape)
    yield Cell("tail at an open level", TYPICAL, TAIL_AT_PEAK)
    yield Cell("tail at an open level", TYPICAL, TAIL_AT_PEAK, known=False)
    yield Cell("pace at one level", TYPICAL, PACE)
    yield Cell("at the margin", replace(TYPICAL, drift=-MOST_DRIFT), AT_MARGIN)


def worlds() -> Iterator[Cell]:
    """What hosts do, with and without a regression, for the product and its rivals."""
    for world in (*CLASSES, *SPECIAL):
        for effect in (NONE, ALL):
            yield Cell("rivals", world, effect, effort=EFFORT.get(world.name, "standard"), rivals=True)


TRAPS = (
    Effect("warm cache, told", cached=0.6),
    Effect("shed load", first=0.8, pace=0.8, failing=0.3),
    Effect("missing metric", first=0.8, pace=0.8, uncounted=True),
    Effect("stale baseline", first=0.8, pace=0.8, stale=True),
    Effect("failures left out", first=0.8, pace=0.8, failing=0.1, left_out=True),
    Effect("errors where there were none", first=0.8, pace=0.8, failing=0.02),
)


def traps() -> Iterator[Cell]:
    """What looks like a gain and is none: never improved."""
    never = (Floor("improved", "<=", 0.0),)
    for effect in TRAPS:
        yield Cell("traps", TYPICAL, effect, gain=TARGET, floors=never, rivals=True)
    cold = replace(TYPICAL, name="warm cache")
    yield Cell("traps", replace(cold, cold=0.6), NONE, gain=TARGET, floors=never, rivals=True)


def gross() -> Iterator[Cell]:
    """Twice as slow: how soon that ends a trial."""
    for effort in ("standard", "thorough"):
        for known in (True, False):
            yield Cell(
                "gross", TYPICAL, GROSS, effort=effort, known=known, within=0.10,
                floors=(Floor("regressed", ">=", 0.99),),
            )  # fmt: skip


def every() -> list[Cell]:
    """All cells."""
    return [*floors(), *guards(), *worlds(), *traps(), *gross()]
