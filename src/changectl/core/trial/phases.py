"""The phases of a trial as the judge takes them, which of them are compared, and whether they may be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from changectl.core.judging.conditions import Difference, Fingerprint, differences, single_difference, unknown
from changectl.core.judging.gates import not_comparable, unequal_work
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.trial.order import Letter


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPhase:
    """One phase of a trial.

    Attributes:
        number: from 1, in the order in which the phases ran; one that got lost leaves a gap.
        letter: A: the saved configuration; B: the new one.
        measurement: its figures.
        conditions: what was so meanwhile.
        fresh: whether the service was started for it.
        events: what needs no statistics.
        observations: what else a reader has to know.
    """

    number: int
    letter: Letter
    measurement: Measurement
    conditions: Fingerprint
    fresh: bool = True
    events: tuple[HardEvent, ...] = ()
    observations: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        return f"phase {self.number} ({self.letter})"


Pair = tuple[TrialPhase, TrialPhase]


def level_names(phases: Sequence[TrialPhase]) -> list[str]:
    """The levels, which are the same in all phases that may be compared."""
    return [level.name for level in phases[0].measurement.levels] if phases else []


def pooled_level(phases: Sequence[TrialPhase], name: str) -> LevelMeasurement:
    """A level of several phases together: requests and failures added up, all else from where the sender was latest."""
    levels = [level for phase in phases if (level := phase.measurement.level(name)) is not None]
    failures = sum((Counter(level.failures) for level in levels), Counter[str]())
    return replace(
        max(levels, key=lambda level: level.lag_p99 or 0.0),
        n=sum(level.n for level in levels),
        ok=sum(level.ok for level in levels),
        failures=dict(sorted(failures.items())),
        undefined=sum((Counter(level.undefined) for level in levels), Counter[str]()),
        cache_hit=None if any(level.cache_hit is None for level in levels) else levels[0].cache_hit,
    )


def of_letter(phases: Sequence[TrialPhase], letter: Letter) -> list[TrialPhase]:
    """The phases of one configuration."""
    return [phase for phase in phases if phase.letter == letter]


def events_of(phase: TrialPhase) -> list[HardEvent]:
    """Its hard events, counted for the configuration that ran."""
    return [replace(event, phase=phase.letter) for event in phase.events]


def pairs_done(phases: Sequence[TrialPhase]) -> int:
    """How many pairs were run."""
    return max((phase.number for phase in phases), default=0) // 2


def pairs(phases: Sequence[TrialPhase]) -> list[Pair]:
    """Each phase of B with the A of its pair; one whose own is lost or still to come, with the nearest."""
    saved = of_letter(phases, "A")
    if not saved:
        return []

    def far(phase: TrialPhase, other: TrialPhase) -> tuple[bool, int]:
        return (phase.number + 1) // 2 != (other.number + 1) // 2, abs(phase.number - other.number)

    return [(min(saved, key=lambda a: far(phase, a)), phase) for phase in of_letter(phases, "B")]


def not_comparable_phases(phases: Sequence[TrialPhase], declared: Collection[str]) -> list[Reason]:
    """Why the phases must not be compared; empty: they may. Every one is held against the first A.

    Args:
        phases: in the order in which they ran.
        declared: the names under which the one declared change may show between A and B, and nowhere else.
    """
    first = next(iter(of_letter(phases, "A")), None)
    new = next(iter(of_letter(phases, "B")), None)
    if first is None or new is None:
        return []
    found: dict[tuple[str, str], Reason] = {}  # what is wrong with the first phase comes up with every other
    for phase in phases:
        if phase is first:
            continue
        events = [event for one in (first, phase) if one.letter == "A" for event in events_of(one)]
        undeclared = _undeclared(first, new, phase, declared)
        unread = unknown(first.conditions, phase.conditions)
        for reason in not_comparable(first.measurement, phase.measurement, undeclared, events, unread):
            named = Reason(reason.code, f"{phase} against {first}: {reason.text}")
            found.setdefault((reason.code, reason.text), named)
    return list(found.values())


def unlike_first(phases: Sequence[TrialPhase]) -> list[Reason]:
    """Why phases of one configuration must not be taken together; empty: they may. Each is held against the first."""
    found: dict[tuple[str, str], Reason] = {}
    for phase in phases[1:]:
        events = [event for one in (phases[0], phase) for event in events_of(one)]
        moved, unread = (
            differences(phases[0].conditions, phase.conditions),
            unknown(phases[0].conditions, phase.conditions),
        )
        for reason in not_comparable(phases[0].measurement, phase.measurement, moved, events, unread):
            found.setdefault(
                (reason.code, reason.text), Reason(reason.code, f"{phase} against {phases[0]}: {reason.text}")
            )
    return list(found.values())


def unequal_levels(phases: Sequence[TrialPhase]) -> dict[str, str]:
    """Level -> why whole answers and throughput must not be compared there; every phase is held against the first A."""
    first = next(iter(of_letter(phases, "A")), None)
    found: dict[str, str] = {}
    if first is None:
        return found
    for phase in phases:
        for old in first.measurement.levels:
            new = phase.measurement.level(old.name)
            if new and (text := unequal_work(old, new)):
                found.setdefault(old.name, f"{phase} against {first}: {text}")
    return found


def _undeclared(first: TrialPhase, new: TrialPhase, phase: TrialPhase, declared: Collection[str]) -> list[Difference]:
    """What differs from the first phase of the same letter, and of the first B from the first A undeclared."""
    if phase.letter == "A":
        return differences(first.conditions, phase.conditions)
    if phase is new:
        return single_difference(first.conditions, new.conditions, declared)
    return differences(new.conditions, phase.conditions)
