"""One trial as the product carries it out: phase after phase through reader, metrics, gates and judge, to its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from tests.bench.verdict.service import Shape
from tests.bench.verdict.worlds import NONE, Effect, Host, World

from changectl.core.judging.baseline import unusable
from changectl.core.judging.conditions import Fingerprint
from changectl.core.judging.harm import LATENCIES
from changectl.core.judging.judgement import Judgement
from changectl.core.measuring.measurement import parse_records, summarise
from changectl.core.measuring.metrics import Expectation
from changectl.core.measuring.records import Record, Records
from changectl.core.trial.noise import spreads_of
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import Letter, length, looks, order
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial

NEARLY_GROSS = 1.2  # times what it was in the first phase
CALIBRATION = 8  # pairs of A and A: what a calibration of a host takes
TRIALS_BEFORE = 5  # whose phases tell of a host's noise, where it was never calibrated
_SAME = {"files": {"/etc/chat.yml": "a"}, "model": "sha256:m"}
SAVED = Fingerprint({**_SAME, "settings": {"slots": "4"}})
CHANGED = Fingerprint({**_SAME, "settings": {"slots": "8"}})


@dataclass
class Ended:
    """How a trial ended.

    Attributes:
        verdict: the word; "refused" where the first phase was no baseline.
        decision: what follows.
        phases: that were run.
        seconds: what they took, with all starts.
        after_change: those of them that came after the first phase of the saved configuration, as a share of what the
            whole effort takes at most.
        records: of each phase, with its letter; kept where a rival is to judge them as well.
        told: the phases up to the verdict.
        places: what stood beyond its limit, or was open.
    """

    verdict: str
    decision: str
    phases: int
    seconds: float
    after_change: float = 0.0
    records: list[tuple[Letter, Sequence[Record]]] = field(default_factory=list)
    told: Sequence[TrialPhase] = ()
    places: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the change stays."""
        return self.decision == "keep"

    @property
    def pairs(self) -> float:
        """As many as were run; half a pair counts."""
        return self.phases / 2


def measured(host: Host, shape: Shape, number: int, letter: Letter) -> tuple[TrialPhase, Records]:
    """One phase, from the generator's lines to what the judge takes."""
    run = host.phase(number, letter)
    records = parse_records("\n".join(run.lines))
    measurement = summarise(records, shape.sizes, facts=run.facts)
    conditions = CHANGED if letter == "B" else SAVED
    phase = TrialPhase(
        number=number, letter=letter, measurement=measurement, conditions=conditions, fresh=run.fresh, events=run.events
    )
    return phase, records


def run(
    world: World,
    shape: Shape,
    effect: Effect,
    chance: np.random.Generator,
    *,
    pairs: int = 4,
    noise: NoiseModel | None = None,
    expect: Sequence[Expectation] = (),
    whole: bool = False,
) -> Ended:
    """A trial to its end.

    Args:
        world: the host.
        shape: what is measured.
        effect: what the change does.
        chance: where every random number comes from.
        pairs: of the effort.
        noise: what is known of the host; None: nothing.
        expect: the gains that the plan expects.
        whole: whether phases go on after the verdict, so that rivals get all of them; the records are kept then.
    """
    host = Host(world, shape, effect, chance, 2 * pairs)
    phases: list[TrialPhase] = []
    ended: Ended | None = None
    kept: list[tuple[Letter, Sequence[Record]]] = []
    told: Sequence[TrialPhase] = ()
    for number, letter in enumerate(order(pairs), start=1):
        phase, records = measured(host, shape, number, letter)
        phases.append(phase)
        if whole:
            kept.append((letter, tuple(records)))
        if ended is None and (_due(phases, looks(pairs)) or _may_be_gross(phases)):
            ended = _look(phases, shape, looks(pairs), noise or NoiseModel(), expect)
            told = tuple(phases)
        if ended and not whole:
            break
    if ended is None:
        raise AssertionError("a trial has to end")
    ended.told, times = told, shape.times
    ended.after_change = (ended.seconds - times.load - times.phase) / length(pairs, times).seconds
    ended.records = kept
    return ended


def _due(phases: Sequence[TrialPhase], schedule: Sequence[int]) -> bool:
    return len(phases) == 1 or (len(phases) % 2 == 0 and len(phases) // 2 in schedule)


def _may_be_gross(phases: Sequence[TrialPhase]) -> bool:
    """Between looks gross harm alone ends a trial; the judge is not asked where nothing comes near to it."""
    first, last = phases[0], phases[-1]
    if last.letter == "A" or last.events or any(level.failed for level in last.measurement.levels):
        return True
    old, new = (_slowest(phase) for phase in (first, last))
    return any(now > NEARLY_GROSS * was for was, now in zip(old, new, strict=True))


def _slowest(phase: TrialPhase) -> list[float]:
    found = []
    for level in phase.measurement.levels:
        rate = level.value("rps_ok")
        found += [level.value(name) or math.inf for name in LATENCIES] + [1 / rate if rate else math.inf]
    return found


def _look(
    phases: Sequence[TrialPhase],
    shape: Shape,
    schedule: Sequence[int],
    noise: NoiseModel,
    expect: Sequence[Expectation],
) -> Ended | None:
    if len(phases) == 1:
        first = phases[0]
        reasons = unusable(
            first.measurement, service_class=shape.service_class, expect=expect, hard_events=first.events
        )
        return _ended("refused", "revert", phases, shape) if reasons else None
    judgement = judge_trial(
        phases, schedule, service_class=shape.service_class, expect=expect, declared=("slots",), noise=noise
    )
    if judgement.decision == "go_on":
        return None
    ended = _ended(judgement.verdict.value, judgement.decision or "", phases, shape)
    ended.places = _places(judgement)
    return ended


def _ended(verdict: str, decision: str, phases: Sequence[TrialPhase], shape: Shape) -> Ended:
    times = shape.times
    # As `plan` counts whole pairs, up to the verdict; of half a pair its second phase and start are left out.
    pairs = (len(phases) + 1) // 2
    spared = (times.load + times.phase) * (2 * pairs - len(phases))
    return Ended(verdict, decision, len(phases), length(pairs, times).seconds - spared - times.load)


def _places(judgement: Judgement) -> tuple[str, ...]:
    state = "breach" if judgement.verdict.value == "regressed" else "open"
    return tuple(row.place for row in judgement.rows if row.state == state)


def calibrated(world: World, shape: Shape, chance: np.random.Generator, pairs: int = CALIBRATION) -> NoiseModel:
    """What so many pairs of A and A tell of a host, as the product reads it from a trial's phases."""
    host = Host(world, shape, NONE, chance, 2 * pairs)
    phases = [measured(host, shape, number, "A")[0] for number in range(1, 2 * pairs + 1)]
    lettered = [
        TrialPhase(number=one.number, letter=letter, measurement=one.measurement, conditions=SAVED)
        for one, letter in zip(phases, order(pairs), strict=True)
    ]
    return NoiseModel().updated(spreads_of(lettered))


def learned(world: World, shape: Shape, chance: np.random.Generator, trials: int = TRIALS_BEFORE) -> NoiseModel:
    """What so many earlier trials of harmless changes tell of a host: they end as soon as they are decided."""
    model = NoiseModel()
    for _ in range(trials):
        model = model.updated(spreads_of(run(world, shape, NONE, chance, noise=model).told))
    return model
