"""Two runs held against each other under the gates of a trial: may they be compared, and is one grossly worse?

Their phases were not measured in turns, so that a host which became slower looks like an effect: like a quick trial it
tells gross harm or none, never a gain. Where a gate fails there is no verdict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import median
from typing import Any

from changectl.core.counting import counted
from changectl.core.judging import harm
from changectl.core.judging.conditions import differences, single_difference, unknown
from changectl.core.judging.gates import not_comparable, unequal_work
from changectl.core.judging.hard_harm import too_few
from changectl.core.judging.judgement import Judgement, Reason, Row, Verdict
from changectl.core.replaying.terms import Terms
from changectl.core.trial.order import Letter
from changectl.core.trial.phases import TrialPhase

# Gate -> the words for what fails in it, in the order in which they are told.
GATES: dict[str, tuple[str, ...]] = {
    "same service and instance": ("other_service", "other_instance"),
    "sound measurements": ("measurement_failed", "baseline_disturbed", "generator_inexact", "generator_untested"),
    "a single difference": ("conditions_differ",),
    "conditions known": ("conditions_unknown",),
    "the same load": ("levels_differ",),
    "load that was reached": (
        *("generator_late", "rate_not_reached", "streams_not_reached"),
        *("level_cut_short", "sender_full"),
    ),
    "cache state": ("cache_state_differs",),
    "equal input": ("unequal_input",),
    "equal work": ("unequal_work",),
    "enough answers": ("too_few",),
}


@dataclass(frozen=True, slots=True)
class Side:
    """One configuration as a run measured it on one instance.

    Attributes:
        run: the run, with its step where it is not the only one.
        letter: A: the saved configuration; B: the new one.
        service: the service's name.
        host: the instance.
        phases: in the order in which they ran.
        terms: what the run was judged by.
    """

    run: str
    letter: Letter
    service: str
    host: str
    phases: Sequence[TrialPhase]
    terms: Terms

    def __str__(self) -> str:
        return f"{self.run}:{self.letter}"


@dataclass(frozen=True, slots=True)
class Gate:
    """One condition of a comparison, and why it fails; no reason: it holds."""

    name: str
    reasons: tuple[Reason, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against it."""
        return not self.reasons


@dataclass(frozen=True, slots=True)
class Comparison:
    """What came of it; `judgement` is None where a gate fails."""

    before: Side
    after: Side
    gates: tuple[Gate, ...]
    judgement: Judgement | None

    @property
    def comparable(self) -> bool:
        """Whether every gate holds."""
        return all(gate.holds for gate in self.gates)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {
            "before": _side_json(self.before),
            "after": _side_json(self.after),
            "comparable": self.comparable,
            "gates": [
                {"name": gate.name, "holds": gate.holds, "reasons": [asdict(reason) for reason in gate.reasons]}
                for gate in self.gates
            ],
            "judgement": None if self.judgement is None else self.judgement.to_json(),
        }


def _side_json(side: Side) -> dict[str, Any]:
    own = {"run": side.run, "configuration": side.letter, "service": side.service, "host": side.host}
    return {**own, "phases": [phase.number for phase in side.phases]}


def compare(before: Side, after: Side) -> Comparison:
    """Hold the second against the first, by the limits of the second run."""
    tried = [(declared, list(_reasons(before, after, declared))) for declared in _declarations(before, after)]
    declared, found = min(tried, key=lambda one: len(one[1]))
    gates = tuple(
        Gate(name, tuple(reason for reason in found if reason.code in codes)) for name, codes in GATES.items()
    )
    judgement = _judge(before, after, declared) if not found else None
    return Comparison(before, after, gates, judgement)


def _declarations(before: Side, after: Side) -> list[Collection[str]]:
    """Under which names one change may show: that of either run, not those of both together."""
    return [before.terms.declared, after.terms.declared]


def _reasons(before: Side, after: Side, declared: Collection[str]) -> Iterator[Reason]:
    """Why they must not be compared, each once: what is wrong with a first phase comes up with every other."""
    if before.service != after.service:
        yield Reason("other_service", f"{before} is of service {before.service}, {after} of {after.service}")
    if before.host != after.host:
        yield Reason("other_instance", f"{before} was measured on {before.host}, {after} on {after.host}")
    told: set[tuple[str, str]] = set()
    for side in (before, after):
        for phase in side.phases:
            for reason in _of_phase(before, after, side, phase, declared):
                if (reason.code, reason.text) not in told:
                    told.add((reason.code, reason.text))
                    named = f"phase {phase.number} of {side} against phase {before.phases[0].number} of {before}"
                    yield Reason(reason.code, f"{named}: {reason.text}")


def _of_phase(before: Side, after: Side, side: Side, phase: TrialPhase, declared: Collection[str]) -> Iterator[Reason]:
    """Against the first phase of all, and what else it differs in from the first one of its own side."""
    first = before.phases[0]
    yield from too_few(phase.measurement, "there")
    if side is before and phase is first:
        return
    if side is before:
        undeclared = differences(first.conditions, phase.conditions)
    else:
        undeclared = single_difference(first.conditions, phase.conditions, declared)
        undeclared += differences(after.phases[0].conditions, phase.conditions)
    events = [replace(event, phase="A") for one in (first, phase) if one in before.phases for event in one.events]
    unread = unknown(first.conditions, phase.conditions)
    yield from not_comparable(first.measurement, phase.measurement, undeclared, events, unread)
    for old in first.measurement.levels:
        new = phase.measurement.level(old.name)
        if new is not None and (text := unequal_work(old, new)):
            yield Reason("unequal_work", text)


def _judge(before: Side, after: Side, declared: Collection[str]) -> Judgement:
    """Gross harm by the rule of a quick trial, in more than half of the phases side by side."""
    terms = Terms(
        service_class=after.terms.service_class,
        slo=after.terms.slo,
        accept=after.terms.accept,
        declared=declared,
        changes_answers=after.terms.changes_answers or before.terms.changes_answers,
    )
    couples = list(zip(before.phases, after.phases, strict=False))
    found = [terms.judge([_as(old, "A", 1), _as(new, "B", 2)]) for old, new in couples]
    rows = _together([row for judgement in found for row in judgement.rows], len(found))
    flags = tuple(dict.fromkeys(flag for judgement in found for flag in judgement.flags))
    worse = [one for one in found if one.verdict is Verdict.REGRESSED]
    if 2 * len(worse) > len(found):
        return Judgement(Verdict.REGRESSED, worse[-1].reasons, rows, flags)
    unsure = [one for one in found if one.verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)]
    if unsure:
        return Judgement(Verdict.INCONCLUSIVE, unsure[0].reasons, rows, flags)
    text = f"nothing was grossly worse ({counted(len(found), 'pair')} of phases compared)"
    text += "; more is not to be told, since they were not measured in turns"
    return Judgement(Verdict.NO_GROSS_HARM, (Reason("not_in_turns", text),), rows, flags)


def _as(phase: TrialPhase, letter: Letter, number: int) -> TrialPhase:
    events = tuple(replace(event, phase=letter) for event in phase.events)
    return replace(phase, letter=letter, number=number, events=events)


def _together(rows: Sequence[Row], couples: int) -> tuple[Row, ...]:
    """One row for each figure: its medians, and a breach where more than half of the phases have one."""
    places = list(dict.fromkeys((row.metric, row.level, row.limit) for row in rows))
    by_place = sorted(rows, key=lambda row: places.index((row.metric, row.level, row.limit)))
    return tuple(
        _of_place(list(own), couples) for _, own in groupby(by_place, lambda row: (row.metric, row.level, row.limit))
    )


def _of_place(rows: Sequence[Row], couples: int) -> Row:
    breaches = [row for row in rows if row.state == "breach"]
    much = 2 * len(breaches) > couples
    shown = breaches[-1] if much else next((row for row in rows if row.state != "breach"), rows[-1])
    old, new = _median([row.before for row in rows]), _median([row.after for row in rows])
    note = shown.note if not breaches or couples == 1 else f"beyond it in {len(breaches)} of {couples} phases"
    state = shown.state if much or shown.state != "breach" else "within"
    return replace(shown, before=old, after=new, change=harm.change(old, new), state=state, note=note)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(median(known)) if len(known) == len(values) else None
