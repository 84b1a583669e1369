"""Hosts that are never quite the same twice, and what a change does there: every number drawn from a fixed seed.

A world is noise on several scales: from start to start (phase), within a phase for two seconds (round), and from one
request to the next, where neighbours resemble each other (AR(1)). On top of that comes what hosts do: they get slower
step by step, or at once; a start is lucky or not; requests fail in bursts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter
from tests.bench.verdict.service import (
    KV_CAPACITY,
    PACE,
    PROMPTS,
    REQUEST_SD,
    TTFT,
    WORKLOAD,
    Array,
    Requests,
    Shape,
    capacity,
    written,
)

from changectl.core.judging.judgement import HardEvent
from changectl.core.units import LevelLoad

ROUNDS = 10  # of a phase and level
BURST = 0.15  # of a level's requests, one after the other, of which BURST_FAILS fail
BURST_FAILS = 0.5


@dataclass(frozen=True)
class World:
    """What a host does by itself.

    Attributes:
        name: as tables show it.
        phase: standard deviation from start to start, of the logarithm of each stage at each level.
        round: the same from round to round in a phase.
        rho: how much a request resembles the one before it.
        correlation: of the stages and levels of one start; 0: each has its own luck.
        drift: by how much everything gets slower from one phase to the next.
        step: by how much everything is slower or faster after a moment between two phases; it comes once in a trial.
        restart: by how much one start in four is slower.
        burst: how often a level of a phase has a burst of failures.
        bimodal: share of requests that take 1.6 times as long to the first token.
        spikes: share of requests that take ten times as long to the first token.
        stalls: how often a level of a phase has a burst of requests that take three times as long.
        cold: by how much the very first phase is slower: nothing is in any cache yet.
        restarts: the chance that the service restarts by itself in a phase, so that its counters begin anew.
        uncounted: share of the answers for which the server does not say how many tokens they have.
    """

    name: str
    phase: float = 0.01
    round: float = 0.015
    rho: float = 0.6
    correlation: float = 0.0
    drift: float = 0.0
    step: float = 0.0
    restart: float = 0.0
    burst: float = 0.0
    bimodal: float = 0.0
    spikes: float = 0.0
    stalls: float = 0.0
    cold: float = 0.0
    restarts: float = 0.0
    uncounted: float = 0.0


QUIET = World("quiet", 0.005, 0.010, 0.2)
TYPICAL = World("typical")
SHARED = World("shared", 0.020, 0.030, 0.8)
CLASSES = (QUIET, TYPICAL, SHARED)
MOST_DRIFT = 0.04

# Beside the three classes: what a typical host does as well, or does otherwise.
SPECIAL = tuple(
    replace(TYPICAL, name=name, **changes)  # type: ignore[arg-type]
    for name, changes in {
        "iid": {"rho": 0.0, "round": 0.0},
        "AR(1) 0.6": {"rho": 0.6},
        "AR(1) 0.9": {"rho": 0.9},
        "drift 1 %": {"drift": 0.01},
        "drift 4 %": {"drift": MOST_DRIFT},
        "step of 10 %": {"step": 0.10},
        "restart effect 5 %": {"restart": 0.05},
        "warm cache": {"cold": 0.6},
        "bursts of errors": {"burst": 0.3},
        "bursts of slow requests": {"stalls": 0.1},
        "bimodal": {"bimodal": 0.2},
        "spikes": {"spikes": 0.01},
        "missing metric": {"uncounted": 0.02},
        "counter reset": {"restarts": 0.05},
    }.items()
)


@dataclass(frozen=True)
class Effect:
    """What the change does.

    Attributes:
        name: as tables show it.
        first: factor of the time to the first token.
        pace: factor of the time per token.
        tail: share of the requests that take three times as long.
        failing: share of the requests that fail.
        only: the one level where it does anything; None: at all.
        cached: share of the input that comes from a cache with the new configuration.
        tells_cache: whether the server says so.
        uncounted: whether the server does not say any more how many tokens it put out.
        left_out: whether failed requests are missing from the records.
        stale: whether the saved configuration was not started for its phases.
    """

    name: str
    first: float = 1.0
    pace: float = 1.0
    tail: float = 0.0
    failing: float = 0.0
    only: str | None = None
    cached: float = 0.0
    tells_cache: bool = True
    uncounted: bool = False
    left_out: bool = False
    stale: bool = False


NONE = Effect("no change")


@dataclass
class PhaseRun:
    """What one phase left behind."""

    lines: list[str]
    facts: dict[str, float | None]
    events: tuple[HardEvent, ...]
    fresh: bool


class Host:
    """One host for the time of one trial."""

    def __init__(
        self,
        world: World,
        shape: Shape,
        effect: Effect,
        chance: np.random.Generator,
        phases: int,
        *,
        one_start: bool = False,
    ) -> None:
        self._world, self._shape, self._effect, self._chance = world, shape, effect, chance
        self._starts: dict[str, Array] | None = {} if one_start else None
        self._stepped = int(chance.integers(2, phases + 1)) if world.step and phases > 1 else 0
        self._direction = 1.0 if chance.random() < 0.5 else -1.0

    def phase(self, number: int, letter: str) -> PhaseRun:
        """Start the service on one configuration, and measure it."""
        effect = self._effect if letter == "B" else NONE
        lines: list[str] = []
        begin, luck = 0.0, self._started(letter) + self._shift(number)
        for (name, load), own in zip(self._shape.loads, luck, strict=True):
            here = effect if effect.only in (None, name) else NONE
            more, begin = written(name, load, begin, self._requests(load, own, here))
            lines += [line for line in more if '"http_5xx"' not in line] if effect.left_out else more
        events: tuple[HardEvent, ...] = ()
        if self._world.restarts and self._chance.random() < self._world.restarts:
            events = (HardEvent("process_restarted", "the service was restarted under load", letter),)  # type: ignore[arg-type]
        fresh = not (self._effect.stale and letter == "A")
        return PhaseRun(lines, {"load_time": 30.0, "kv_capacity": KV_CAPACITY}, events, fresh)

    def _started(self, letter: str) -> Array:
        """The luck of a start, which is kept where there is just one of each configuration."""
        if self._starts is None:
            return self._luck()
        return self._starts.setdefault(letter, self._luck())

    def _luck(self) -> Array:
        """By how much first token and pace of each level are slower after this start, as logarithms."""
        world, levels = self._world, len(self._shape.loads)
        common, own = self._chance.normal(), self._chance.normal(size=(levels, 2))
        mixed = np.sqrt(world.correlation) * common + np.sqrt(1 - world.correlation) * own
        found: Array = world.phase * mixed
        if world.restart and self._chance.random() < 0.25:
            found = found + world.restart
        return found

    def _shift(self, number: int) -> float:
        """By how much the host itself is slower in this phase than it was in the beginning."""
        shift = self._world.drift * (number - 1)
        if self._stepped and number >= self._stepped:
            shift += self._direction * self._world.step
        return shift + (self._world.cold if number == 1 else 0.0)

    def _requests(self, load: LevelLoad, luck: Array, effect: Effect) -> Requests:
        chance, world = self._chance, self._world
        fastest = 0.5 * (TTFT * effect.first + 15 * PACE * effect.pace) * float(np.exp(luck.min()))
        many = capacity(load, fastest * (1 - effect.failing) + 0.1 * effect.failing)
        prompt = np.arange(many) % PROMPTS
        noise = self._noise(many, load)
        first = TTFT * effect.first * np.exp(luck[0] + noise[0]) * WORKLOAD.slower[prompt]
        pace = PACE * effect.pace * np.exp(luck[1] + noise[1])
        for share, factor in ((world.bimodal, 1.6), (world.spikes, 10.0)):
            if share:
                first = np.where(chance.random(many) < share, factor * first, first)
        if effect.tail:
            slow = np.where(chance.random(many) < effect.tail, 3.0, 1.0)
            first, pace = first * slow, pace * slow
        if world.stalls and chance.random() < world.stalls:
            slow = np.where(self._burst(many, load), 3.0, 1.0)
            first, pace = first * slow, pace * slow
        if effect.cached:
            first = first * (1 - 0.7 * effect.cached)
        failed = chance.random(many) < effect.failing if effect.failing else np.zeros(many, dtype=np.bool_)
        if world.burst and chance.random() < world.burst:
            failed |= self._burst(many, load)
        return Requests(
            first, pace, prompt, failed,
            cached=effect.cached if effect.tells_cache else None,
            counted=self._counted(many, effect),
        )  # fmt: skip

    def _noise(self, many: int, load: LevelLoad) -> Array:
        """Rounds, and requests that resemble the one before them; about as many are sent as at the usual pace."""
        world, chance = self._world, self._chance
        expected = many if load.streams is None else load.streams * 20 / (TTFT + 19.5 * PACE)
        rounds = np.minimum((np.arange(many) * ROUNDS / expected).astype(np.int64), ROUNDS - 1)
        own = chance.normal(0, REQUEST_SD * np.sqrt(1 - world.rho**2), size=(2, many))
        own[:, 0] /= np.sqrt(1 - world.rho**2)  # so that it is as noisy in the beginning as later
        alike: Array = lfilter([1.0], [1.0, -world.rho], own, axis=1) if world.rho else own
        return alike + chance.normal(0, world.round, size=(2, ROUNDS))[:, rounds]

    def _burst(self, many: int, load: LevelLoad) -> npt.NDArray[np.bool_]:
        expected = many if load.streams is None else int(load.streams * 20 / (TTFT + 19.5 * PACE))
        length = max(1, int(BURST * expected))
        begin = int(self._chance.integers(0, max(1, expected - length)))
        place = np.arange(many)
        return (place >= begin) & (place < begin + length) & (self._chance.random(many) < BURST_FAILS)

    def _counted(self, many: int, effect: Effect) -> npt.NDArray[np.bool_]:
        if effect.uncounted:
            return np.zeros(many, dtype=np.bool_)
        if self._world.uncounted:
            return self._chance.random(many) >= self._world.uncounted
        return np.ones(many, dtype=np.bool_)


def of_class(name: str, worlds: Sequence[World] = CLASSES) -> World:
    """The noise class of that name."""
    return next(world for world in worlds if world.name == name)
