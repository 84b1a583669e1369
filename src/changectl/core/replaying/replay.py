"""A verdict once more from the stored raw records, and whether it is the same to the bit.

Nothing of it asks a host or writes: the journal names the records by digest, and says by which terms was judged.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.errors import ChangectlError, InputError, Problem, Refused
from changectl.core.history.events import MEASURE, OBSERVE, VERDICT, mapping_of, mappings_of, outcome, text_of
from changectl.core.history.runs import RunSummary
from changectl.core.judging.judgement import Judgement
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.records import Records
from changectl.core.ports import Event
from changectl.core.replaying.basis import Basis
from changectl.core.replaying.comparing import Side
from changectl.core.replaying.policy import Policy
from changectl.core.replaying.sameness import Differs, as_known_then, first_difference
from changectl.core.replaying.terms import Terms
from changectl.core.trial.order import Letter
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.record import recorded_phase, trial_runs

NOT_JUDGED, LIVE_TRAFFIC, NO_TERMS = "not_judged", "live_traffic", "no_terms"
_BESIDE = ("host", "process", "looks", "terms", "noise")  # what stands in the event beside the judgement
RECORDS_LOST, RECORDS_UNREADABLE = "records_lost", "records_unreadable"

Read = Callable[[str], Sequence[Event]]  # the events of a run
Blob = Callable[[str], bytes]  # kept bytes by their digest, checked; raises ChangectlError


@dataclass(frozen=True)
class RawPhase:
    """One phase with the records of its requests.

    Attributes:
        body: its `measure.outcome`.
        basis: what its figures stand on beside the records.
        records: of its requests, as they were stored.
    """

    body: Mapping[str, Any]
    basis: Basis
    records: Records

    def computed(self, policy: Policy | None = None) -> TrialPhase:
        """The phase with its figures computed from the records, under other limits where a policy is given."""
        basis = self.basis.under(policy.slo if policy else None)
        return replace(recorded_phase(self.body), measurement=basis.measurement(self.records))

    @property
    def name(self) -> str:
        """As people are told of it."""
        return str(recorded_phase(self.body))


@dataclass(frozen=True)
class RawTrial:
    """All that the verdict on one instance was made of."""

    step: int
    host: str
    verdict: Mapping[str, Any]  # the body of its event
    terms: Terms
    phases: tuple[RawPhase, ...]

    @property
    def levels(self) -> tuple[str, ...]:
        """The load levels that were measured."""
        return tuple(self.phases[0].basis.sizes) if self.phases else ()


@dataclass(frozen=True)
class Replayed:
    """A verdict computed once more.

    Attributes:
        trial: what it was made of.
        judgement: what comes out of it now.
        differs: the first figure that is not as recorded; None: every one on record is, to the bit.
        instead: what other limits would have said; None: none were given.
        not_on_record: figures that no record has of an earlier program's phases; nothing is said of these.
    """

    trial: RawTrial
    judgement: Judgement
    differs: Differs | None
    instead: Judgement | None
    not_on_record: tuple[str, ...] = ()


def replay(trial: RawTrial, policy: Policy | None = None) -> Replayed:
    """Judge a trial once more, by its own terms, and by other ones where a policy is given.

    Raises:
        Refused: its phases are not those of a trial.
    """
    phases = [phase.computed() for phase in trial.phases]
    instead = None
    try:
        judgement = trial.terms.judge(phases)
        if policy is not None:
            instead = trial.terms.under(policy).judge([phase.computed(policy) for phase in trial.phases])
    except ValueError as error:
        text = f"what is on record of {trial.host} makes no whole trial: {error}"
        raise Refused(f"{text}. See what else is damaged: changectl audit verify", reason=RECORDS_LOST) from error
    found = [_of_phase(raw, phase) for raw, phase in zip(trial.phases, phases, strict=True)]
    differs = next((one for one, _ in found if one), None) or _of_verdict(trial, judgement)
    unknown_then = sorted({name for _, names in found for name in names})
    return Replayed(trial, judgement, differs, instead, tuple(unknown_then))


def _of_phase(raw: RawPhase, phase: TrialPhase) -> tuple[Differs | None, tuple[str, ...]]:
    """The first figure that is not as recorded, and the names of those that are not on record."""
    recorded, again = mapping_of(raw.body, "summary"), _as_stored(phase.measurement.to_json())
    levels, not_on_record = as_known_then(mappings_of(recorded, "levels"), again["levels"])
    return first_difference(recorded, {**again, "levels": levels}, str(phase)), not_on_record


def _of_verdict(trial: RawTrial, judgement: Judgement) -> Differs | None:
    again = _as_stored(judgement.to_json())
    recorded = {name: value for name, value in trial.verdict.items() if name not in _BESIDE}
    return first_difference(recorded, again, "verdict")


def _as_stored(document: Mapping[str, Any]) -> Any:
    return json.loads(json.dumps(document, allow_nan=False))


def raw_trials(run: str, step: int | None, read: Read, runs: Sequence[RunSummary], blob: Blob) -> list[RawTrial]:
    """Read what the verdicts of a run were made of, its raw records checked against the digests in the journal.

    Args:
        run: the run.
        step: one of its steps; None: all of them.
        read: the record.
        runs: all runs, oldest first.
        blob: the kept bytes.

    Raises:
        Refused: there is no such verdict, or its records are missing, changed or not readable; the text says which.
    """
    events = [event for event in read(run) if step in (None, event.step)]
    verdicts = [event for event in events if event.kind == VERDICT]
    if not verdicts:
        raise Refused(f"{_named(run, step)} has no verdict: nothing was judged", reason=NOT_JUDGED)
    if any(event.kind == outcome(OBSERVE) for event in events):
        text = f"{_named(run, step)} was judged by live traffic: of requests that users sent there is no record"
        raise Refused(text, reason=LIVE_TRAFFIC)
    earlier = [event for name in trial_runs(run, runs)[:-1] for event in read(name)]
    return [_raw_trial(_named(run, event.step), event, [*earlier, *events], blob) for event in verdicts]


def _named(run: str, step: int | None) -> str:
    return f"run {run}" if step is None else f"run {run}/{step}"


def _raw_trial(name: str, verdict: Event, events: Sequence[Event], blob: Blob) -> RawTrial:
    host = text_of(verdict.body, "host")
    bodies = [
        event.body
        for event in events
        if event.kind == outcome(MEASURE) and event.step == verdict.step and event.body.get("ok")
        if text_of(event.body, "host") == host
    ]
    try:
        terms = Terms.from_json(verdict.body["terms"])
        phases = tuple(_raw_phase(name, body, Basis.from_json(body["basis"]), blob) for body in bodies)
    except KeyError as error:
        text = f"{name} was recorded by a changectl that did not keep by which terms it judged ({error} is missing)"
        raise Refused(f"{text}: its verdict cannot be computed once more", reason=NO_TERMS) from error
    except ValueError as error:
        raise Refused(f"{name} was recorded in another shape: {error}", reason=NO_TERMS) from error
    return RawTrial(verdict.step, host, verdict.body, terms, phases)


def _raw_phase(name: str, body: Mapping[str, Any], basis: Basis, blob: Blob) -> RawPhase:
    digest, phase = text_of(body, "blob"), recorded_phase(body)
    try:
        data = blob(digest)
    except ChangectlError as error:
        text = f"the raw records of {phase} of {name} are not what was recorded, so nothing was judged: {error}"
        raise Refused(f"{text}. See what else is damaged: changectl audit verify", reason=RECORDS_LOST) from error
    try:
        return RawPhase(body, basis, parse_records(data.decode()))
    except ValueError as error:
        text = f"the raw records of {phase} of {name} (sha256 {digest}) are as stored, and cannot be read: {error}"
        raise Refused(text, reason=RECORDS_UNREADABLE) from error


def common_host(runs: Sequence[Sequence[RawTrial]], wanted: str | None) -> str | None:
    """The instance on which runs can be compared; None: they have none in common, which is for a gate to say.

    Args:
        runs: what the verdicts of each were made of.
        wanted: the instance that was asked for; None: the only one.

    Raises:
        InputError: a run was not measured there, or nobody said which of several is meant.
    """
    measured = [list(dict.fromkeys(trial.host for trial in trials)) for trials in runs]
    common = [host for host in measured[0] if all(host in hosts for hosts in measured)]
    if wanted is None and len(common) > 1:
        raise InputError(Problem("these runs measured several instances", hint=f"add --host, one of {_all(common)}"))
    if wanted is not None and wanted not in common:
        hint = f"both were measured on: {_all(common) or 'no instance'}"
        raise InputError(Problem(f'not both of these runs measured "{wanted}"', hint=hint))
    return wanted or next(iter(common), None)


def _all(names: Sequence[str]) -> str:
    return ", ".join(names)


def side_of(run: RunSummary, trials: Sequence[RawTrial], host: str | None, letter: str | None) -> Side:
    """One configuration of a run, its figures computed from the raw records.

    Args:
        run: the run.
        trials: what its verdicts were made of; the last of a host counts.
        host: the instance; None: the first one.
        letter: A or B; None: the one that was in force when the run ended.

    Raises:
        InputError: that configuration was not measured there.
    """
    trial = next(one for one in reversed(trials) if host in (None, one.host))
    step = run.steps[trial.step - 1]
    in_force: Letter = "B" if step.changed_something else "A"
    chosen: Letter = "A" if letter == "A" else "B" if letter == "B" else in_force
    phases = [phase for phase in (raw.computed() for raw in trial.phases) if phase.letter == chosen]
    name = run.run if len(run.steps) == 1 else f"{run.run}/{trial.step}"
    if not phases:
        raise InputError(Problem(f"{name}:{chosen} was not measured on {trial.host}"))
    return Side(name, chosen, run.service, trial.host, phases, trial.terms)
