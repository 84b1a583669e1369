"""Ending a level early does no harm: phases of the same service differ by chance alone, whether or not they end early.

Requests of known pace go through the real stopping rule in a time that is only counted.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import pytest

from changectl.adapters.loadgen.deck import Deck
from changectl.adapters.loadgen.enough import Enough
from changectl.adapters.loadgen.job import Item
from changectl.adapters.loadgen.precise import Precision
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.measurement import summarise
from changectl.core.measuring.records import Record
from changectl.core.units import LevelLoad

SECONDS, STREAMS, ENTRIES = 20.0, 4, 6
NOISE = 0.02  # between phases, as it is taken for the host's
FIGURES = {"ttft_user_p50": NOISE / 2, "e2e_user_p50": NOISE / 2, "e2e_user_p95": NOISE, "rps_ok": NOISE / 2}
SIZE = {"low": LevelSize(LevelLoad(streams=STREAMS), SECONDS, may_end=True)}
PAIRS = 16


@dataclass(frozen=True)
class World:
    """How requests of one service differ: by so much, and how alike neighbours are (AR(1))."""

    deviation: float
    alike: float


def measured(source: random.Random, world: World) -> LevelMeasurement:
    """One level of one phase, each request being due when its stream became free."""
    items = [Item(str(number), {"prompt": "x"}, 8) for number in range(ENTRIES)]
    deck, precision = Deck(items), Precision(Enough(240, FIGURES), ENTRIES)
    moments: list[tuple[int, int, tuple[Mapping[str, Any], int] | None]] = [(0, one, None) for one in range(STREAMS)]
    records: list[Record] = []
    ended, state = None, source.gauss(0, 1)
    while moments:
        now, stream, done = heapq.heappop(moments)
        if done is not None:
            precision.add(*done, last=True)
        if now / 1e9 >= SECONDS:
            continue
        if deck.between_rounds and precision.reached():
            deck.close()
            ended = now / 1e9
        if (dealt := deck.take()) is None:
            continue
        item, number = dealt
        state = world.alike * state + math.sqrt(1 - world.alike**2) * source.gauss(0, 1)
        whole = int(5e7 * (1 + int(item.id) / 5) * math.exp(world.deviation * state))
        records.append(answered(len(records), stream, number, item.id, now, whole))
        heapq.heappush(moments, (now + whole, stream, (records[-1]._asdict(), number)))
    return summarise(records, SIZE, ended={} if ended is None else {"low": ended}).levels[0]


def answered(i: int, stream: int, number: int, prompt: str, now: int, whole: int) -> Record:
    end, first = now + whole, now + whole // 4
    return Record(i, "low", stream, prompt, number, now, "ok", now, now, now, first, first, end, end, 8, 8, 0, 8)


def effects(world: World, seed: int) -> tuple[list[LevelMeasurement], dict[str, list[float]]]:
    """The levels of all pairs, and by how much the figures of the two phases of a pair differ."""
    source = random.Random(seed)
    levels = [measured(source, world) for _ in range(2 * PAIRS)]
    pairs = list(zip(levels[::2], levels[1::2], strict=True))
    moved = {
        name: [math.log(figure(name, other) / figure(name, one)) for one, other in pairs]
        for name in ("e2e_user_p50", "e2e_user_p95", "e2e_user_mean", "rps_ok")
    }
    return levels, moved


def figure(name: str, level: LevelMeasurement) -> float:
    metric, _, statistic = name.rpartition("_") if name != "rps_ok" else (name, "", None)
    value = level.value(metric, statistic)
    assert value is not None
    return value


@pytest.mark.parametrize("world", [World(0.05, 0.0), World(0.05, 0.6)], ids=["iid", "ar"])
def test_a_quiet_world_s_phases_are_shorter_and_differ_by_chance_alone(world: World) -> None:
    levels, moved = effects(world, 11)

    assert fmean(level.spared for level in levels) > 2.0
    for name, effect in moved.items():
        assert abs(fmean(effect)) < 3 * stdev(effect) / math.sqrt(PAIRS), name
        assert stdev(effect) < 2 * NOISE * (2 if name.endswith("p95") else 1), "as precise as was asked for"


@pytest.mark.parametrize("world", [World(0.5, 0.0), World(0.4, 0.6)], ids=["iid", "ar"])
def test_a_noisy_world_s_phases_use_all_of_their_time(world: World) -> None:
    levels, _ = effects(world, 12)
    assert {level.ended for level in levels} == {None}


def test_phases_that_end_early_show_what_longer_ones_show() -> None:
    """What is left out and what is kept have the same figures: no level looks faster because it was shorter."""
    early = [measured(random.Random(seed), World(0.05, 0.6)) for seed in range(PAIRS)]
    whole = [measured(random.Random(seed), World(0.40, 0.6)) for seed in range(PAIRS)]
    assert all(level.ended for level in early)
    assert not any(level.ended for level in whole)
    busy = 5e7 * fmean(1 + number / 5 for number in range(ENTRIES)) / 1e9
    for levels, deviation in ((early, 0.05), (whole, 0.40)):
        expected = STREAMS / (busy * math.exp(deviation**2 / 2))
        rates = [figure("rps_ok", level) for level in levels]
        assert abs(fmean(rates) / expected - 1) < 3 * stdev(rates) / expected / math.sqrt(PAIRS) + 0.002
