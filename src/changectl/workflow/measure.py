"""One phase: the load is sent, the raw records are kept, and what was so meanwhile is noted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Literal

from changectl.core.history.events import mapping_of
from changectl.core.judging.conditions import Fingerprint
from changectl.core.judging.exactness import INEXACT, shortcomings
from changectl.core.judging.gates import LATE, shortfalls
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.answers import expecting
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.measurement import parse_records
from changectl.core.measuring.records import Records
from changectl.core.measuring.self_test import said
from changectl.core.observed import HostFacts
from changectl.core.replaying.basis import Basis
from changectl.core.trial.phases import TrialPhase
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.calling import Sent, calling
from changectl.workflow.conditions import LoadPlan, Present, fingerprint, model_digest
from changectl.workflow.contact import read_model
from changectl.workflow.events import Look, hard_events, observations
from changectl.workflow.path import require_path
from changectl.workflow.sampling import Sampled, sampling
from changectl.workflow.staying_out import time_left
from changectl.workflow.tools import Tools

Letter = Literal["A", "B"]


@dataclass(frozen=True)
class Start:
    """How the measured process was started.

    Attributes:
        fresh: whether this run started it.
        log: what it said while it started: some engines tell there alone what they can hold.
        load_time: seconds until its first answer; None: not seen.
    """

    fresh: bool
    log: Sequence[str]
    load_time: float | None = None


@dataclass(frozen=True)
class Phase:
    """One measurement and its conditions."""

    letter: Letter  # A: the saved configuration; B: the new one
    measurement: Measurement
    conditions: Fingerprint
    events: tuple[HardEvent, ...]
    observations: tuple[Reason, ...]
    process: tuple[int, int | None] | None  # which process was measured

    def as_trial_phase(self, number: int, *, fresh: bool) -> TrialPhase:
        """As the judge takes it."""
        return TrialPhase(
            number=number,
            letter=self.letter,
            measurement=self.measurement,
            conditions=self.conditions,
            fresh=fresh,
            events=self.events,
            observations=self.observations,
        )


def measure(attempt: Attempt, letter: Letter, load: LoadPlan, start: Start, number: int | None = None) -> Phase:
    """Measure the running service; what was so meanwhile is read anew, for nothing of it may have stayed by itself.

    Args:
        attempt: the instance.
        letter: the configuration that it runs.
        load: what is sent.
        start: how the process was started.
        number: the phase's, from 1, where a trial has several of each letter.

    Raises:
        HostCallError, ContactLost: the host could not be asked. A load generator that failed is no error: the phase
            says that it is invalid.
        CallerLost: the host that sends the load is lost: there is no phase.
        NotKept: the way through the balancer is cut, or led elsewhere: there is none either.
    """
    target, tools = attempt.target, attempt.tools
    before = Look(target.status(), HostFacts.read(target.host_answer()))
    which = {"phase": letter, "host": target.name, **({} if number is None else {"number": number})}
    facts = {**which, "fresh_start": start.fresh, "levels": load.facts()["levels"], "caller": load.caller_name(target),
             "path": load.path}  # fmt: skip
    with attempt.recorder.acting("measure", facts) as outcome:
        outcome.update(which)
        way_back = 2 * (start.load_time or 0.0)
        loaded = _loaded(attempt, letter if number is None else f"{letter}{number}", load, way_back, outcome)
        sent, parsed, seen = loaded.sent, loaded.records, loaded.seen
        status, host = target.status(before.status.cursor), target.host_answer(since=before.status.now)
        after = Look(status, HostFacts.read(host))
        pages, log = target.pages(answer=False), [*start.log, *status.log]
        capacity = target.engine.capacity(pages, log)
        require_path(target, load, parsed, seen)
        basis = Basis(
            load.sizes,
            target.service.slo,
            {"load_time": start.load_time, "kv_capacity": capacity.kv_tokens},
            sent.failure,
            expecting(load.workload),
            said(sent.summary) if sent.failure is None else None,
            ended=_ended(load, sent),
        )
        measurement = basis.measurement(parsed)
        present = present_at(attempt, host, target.engine.version(pages, log), loaded.caller)
        conditions = fingerprint(attempt.contact, present, load, tools.secrets)
        events = (*hard_events(before, after, letter), *_replaced_model(attempt, letter, present))
        notes = observations(before, after, letter)
        outcome.update(
            fresh_start=start.fresh, summary=measurement.to_json(), activity=seen.activity.to_json(parsed),
            blob=tools.records.put_blob(tools.secrets.redactor.known(sent.records).encode()),
            basis=basis.to_json(), conditions=conditions.to_json(), events=[asdict(event) for event in events],
            observations=[asdict(one) for one in notes], generator=dict(sent.summary),
        )  # fmt: skip
    _tell_spared(attempt, measurement)
    return Phase(letter, measurement, conditions, events, notes, status.identity)


def _ended(load: LoadPlan, sent: Sent) -> dict[str, float]:
    """After how many seconds levels were over because their figures were precise, as the generator says."""
    said = mapping_of(sent.summary, "ended")
    return {name: float(said[name]) for name in load.enough if isinstance(said.get(name), int | float)}


def _tell_spared(attempt: Attempt, measurement: Measurement) -> None:
    early = [f"{one.name} after {format_duration(one.ended)}" for one in measurement.levels if one.ended is not None]
    if early:
        attempt.tools.reporter.note(f"{attempt.target.name}: precise before its time was used: {', '.join(early)}")


@dataclass(frozen=True)
class _Loaded:
    """What came of sending the load once."""

    sent: Sent
    records: Records
    caller: Mapping[str, Any]  # what is to be known about the host that sent it
    seen: Sampled


def _loaded(attempt: Attempt, phase: str, load: LoadPlan, way_back: float, outcome: dict[str, Any]) -> _Loaded:
    """Send the load; once more where the generator was late, for a moment in which its host was busy passes.

    The first try is no part of the phase, and stays on record. The second one has prompts that no cache knows yet.
    There is none where it and the way back (seconds) would keep the instance out of service for too long.
    """
    tools, begun = attempt.tools, attempt.tools.clock.monotonic()
    first = _once(attempt, phase, load, outcome)
    late = late_words(first.sent, first.records, load)
    if not late or time_left(attempt) < tools.clock.monotonic() - begun + way_back:
        return first
    text = f"{attempt.target.name}: the load generator did not keep up in {phase} ({late}); measuring it once more"
    tools.reporter.note(text)
    outcome["late"] = {"text": late, "blob": _kept(tools, first.sent.records)}
    tools.interrupts.check()
    return _once(attempt, f"{phase} again", load, outcome)


def _once(attempt: Attempt, phase: str, load: LoadPlan, outcome: dict[str, Any]) -> _Loaded:
    with _watched(attempt, load, outcome) as seen:
        sent, caller = _send(attempt, phase, load)
    return _Loaded(sent, parse_records(sent.records), caller, seen)


def late_words(sent: Sent, records: Records, load: LoadPlan) -> str:
    """How late the generator's requests or stamps were; empty: in time, or it failed, which no second try mends."""
    if sent.failure is not None:
        return ""
    measured = Basis(load.sizes, self_test=said(sent.summary)).measurement(records)
    found = [f"{text} at {level.name}" for level in measured.levels for code, text in shortfalls(level) if code == LATE]
    return "; ".join([*found, *(text for code, text in shortcomings(measured) if code == INEXACT)])


@contextmanager
def _watched(attempt: Attempt, load: LoadPlan, outcome: dict[str, Any]) -> Iterator[Sampled]:
    """Sample the instance while it is under load; what was seen is recorded, also of a phase that failed."""
    seen = Sampled(attempt.target)
    try:
        with sampling(seen, load.expected_seconds, attempt.bindings()):
            yield seen
    finally:
        if seen.looks.looks:
            outcome.update(activity=seen.activity.to_json(), samples=_kept(attempt.tools, seen.raw()))


def _kept(tools: Tools, lines: str) -> str | None:
    """The digest of what is kept beside the records of the phase; None: it cannot be, which fails no measurement."""
    try:
        return tools.records.put_blob(tools.secrets.redactor.known(lines).encode())
    except Exception:  # noqa: BLE001 - the summary is recorded all the same
        return None


def present_at(attempt: Attempt, host: Mapping[str, Any], version: str | None, caller: Mapping[str, Any]) -> Present:
    """What the instance is right now; `caller`: who sends the load, nothing where users do."""
    target, tools = attempt.target, attempt.tools
    observed = target.inspect()
    tools.secrets.learn_observed(observed)
    model = model_digest(read_model(target, observed, attempt.model, tools))
    return Present(target.hello(), host, observed, model, version, caller)


def _replaced_model(attempt: Attempt, letter: Letter, present: Present) -> tuple[HardEvent, ...]:
    """The measured process may have loaded either model: such a baseline is equal to no later measurement."""
    found = model_digest(attempt.model)
    if letter == "B" or None in (present.model, found) or present.model == found:
        return ()
    return (HardEvent("model_replaced", "the model's files are not those that were there when the run began", letter),)


def _send(attempt: Attempt, phase: str, load: LoadPlan) -> tuple[Sent, dict[str, Any]]:
    """What came of the load, and what is to be known about the host that sent it."""
    tools, target = attempt.tools, attempt.target
    started = tools.clock.monotonic()

    def show(progress: Mapping[str, Any]) -> None:
        level = progress.get("level", "")
        tools.reporter.waiting(
            f"measuring {phase} at {level} ({progress.get('done', 0)} requests)",
            elapsed=tools.clock.monotonic() - started,
            expected=load.expected_seconds,
        )

    with calling(target, load.caller, tools) as caller:
        job = load.job(target, attempt.salt(phase))
        sent = caller.send(tools.generator(), job, attempt.host_run_name, load.timeout, show)
        return sent, caller.conditions(sent)
