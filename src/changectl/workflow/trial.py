"""The trial on one instance: measure as it is, change, wait, prove that the change arrived, measure again, judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from changectl.core.declared.plan import Plan
from changectl.core.declared.step import Step
from changectl.core.incident import Incident
from changectl.core.judging.baseline import BASELINE_INVALID, advice, unusable
from changectl.core.judging.judgement import Judgement
from changectl.core.lifecycle import DIED
from changectl.core.ports import Clock
from changectl.core.replaying.terms import Terms
from changectl.core.trial.calibration import Calibration
from changectl.core.trial.precision import enough
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.effect import effect_of
from changectl.workflow.measure import Letter, Phase, Start, measure
from changectl.workflow.noise import HostNoise
from changectl.workflow.not_kept import NotKept
from changectl.workflow.ready import NotReady, Ready
from changectl.workflow.room import Room
from changectl.workflow.same_conditions import require_same_conditions
from changectl.workflow.target import Target
from changectl.workflow.turns import Acts, Longer, Turns

DID_NOT_START, SAVED_DID_NOT_START = "did_not_start", "saved_did_not_start"
PAUSES = (0.0, 1.0, 3.0)  # seconds before each look at a service that is to be kept


@dataclass(frozen=True)
class Acceptance:
    """What the change is held against."""

    plan: Plan
    step: Step
    load: LoadPlan | None  # None in an incident, and where live traffic is observed: nothing is sent
    checks: Sequence[str]  # testinfra files, absolute
    incident: Incident | None = None  # the service is sick already: live guards instead of a comparison
    longer: Mapping[str, Longer] = field(default_factory=dict)  # instance -> its trial on record, which goes on
    calibration: Calibration | None = None  # nothing is changed: the saved configuration alone is measured


@dataclass(frozen=True)
class Trial:
    """What came of one instance: the judgement (None in an incident), and the process that it is about."""

    judgement: Judgement | None
    process: tuple[int, int | None] | None


def try_change(attempt: Attempt, acceptance: Acceptance, *, fresh_baseline: bool) -> Trial:
    """Change one instance and judge it.

    Raises:
        NotKept: the baseline is worthless (then nothing was written), or the change did not start, did not arrive,
            moved something else, or failed the operator's checks.
        ChangectlError: the trial could not be carried out.
    """
    if not acceptance.plan.effort.quick:
        return _in_turns(attempt, acceptance)
    before = _baseline(attempt, acceptance, fresh_baseline)
    _require_usable(attempt, acceptance, before)
    attempt.change()
    ready = started(attempt, "the new configuration")
    prove_effect(attempt, ready)
    after = _measured(attempt, "B", acceptance, Start(True, ready.log, ready.seconds))
    run_checks(attempt, acceptance)
    terms = terms_of(attempt, acceptance)
    judgement = terms.judge([before.as_trial_phase(1, fresh=fresh_baseline), after.as_trial_phase(2, fresh=True)])
    return recorded(attempt, judgement, after.process, terms=terms.to_json())


def still_good(target: Target, process: tuple[int, int | None] | None, clock: Clock) -> None:
    """The last look before a change counts as kept: what was judged has to be what runs, and it has to answer.

    Raises:
        NotKept: the judged process is gone, or it does not answer any more.
    """
    said = ""
    for pause in PAUSES:
        clock.sleep(pause)
        if process is None or target.status().identity != process:
            raise NotKept(DIED, f"{target.name}: the process that was judged does not run any more")
        readiness = target.engine.readiness(target.pages(answer=True), target.service.model.name)
        if readiness.state == "ready" and target.status().identity == process:
            return
        said = readiness.detail
    raise NotKept(DIED, f"{target.name}: it was judged, and does not answer any more: {said}")


def still_written(target: Target, path: str, digest: str) -> None:
    """What was judged has to be what the next start reads, too. Raises NotKept."""
    facts = target.inspect().files.get(path)
    if facts is None or facts.sha256 != digest:
        raise NotKept("overwritten", f"{target.name}: {path} was changed by somebody else since it was written")


def _baseline(attempt: Attempt, acceptance: Acceptance, fresh: bool) -> Phase:
    if not fresh:
        attempt.tools.reporter.note(f"{attempt.target.name}: baseline without a restart (the only instance)")
        return _measured(attempt, "A", acceptance, Start(False, attempt.contact.status.whole_log))
    attempt.restart()
    ready = started_saved(attempt)
    return _measured(attempt, "A", acceptance, Start(True, ready.log, ready.seconds))


def _measured(
    attempt: Attempt, letter: Letter, acceptance: Acceptance, start: Start, number: int | None = None
) -> Phase:
    if acceptance.load is None:
        raise ValueError("a step without a load has nothing to be measured with")
    return measure(attempt, letter, acceptance.load, start, number)


def _in_turns(attempt: Attempt, acceptance: Acceptance) -> Trial:
    """Several pairs, each phase with a fresh start. Raises NotKept as `try_change` does."""
    plan, longer = acceptance.plan, acceptance.longer.get(attempt.target.name)
    if acceptance.load is None:
        raise ValueError("a step without a load has nothing to be measured with")
    noise = HostNoise(attempt, acceptance.load, None if longer is None else longer.earlier)
    terms = replace(terms_of(attempt, acceptance), noise=noise.assumed)
    load = _until_precise(acceptance.load, terms, longer)
    acceptance = replace(acceptance, load=load)
    acts = Acts(
        began={"A": partial(started_saved, attempt), "B": partial(started, attempt, "the new configuration")},
        proven=partial(prove_effect, attempt),
        measured=lambda letter, number, start: _measured(attempt, letter, acceptance, start, number),
        usable=partial(_require_usable, attempt, acceptance),
        checked=partial(run_checks, attempt, acceptance),
        judged=lambda phases, schedule: replace(terms, schedule=schedule).judge(phases),
    )
    if longer is not None:
        require_same_conditions(attempt, load, longer.earlier)
    room = Room(plan.outage, plan.effort.seconds if longer is None else None)
    turns = Turns(attempt, acts, room, acceptance.step.on_inconclusive, longer)
    judgement = turns.judge(plan.effort)
    found = noise.found(turns.phases, judgement)
    terms = replace(terms, schedule=turns.schedule, stopped=turns.stopped)
    return recorded(attempt, judgement, turns.process, terms=terms.to_json(), looks=list(turns.looks), noise=found)


def _until_precise(load: LoadPlan, terms: Terms, longer: Longer | None) -> LoadPlan:
    """The load with levels that end as soon as their figures are precise enough for this trial.

    One that goes on sends it as its phases on record did: what is measured in another way would not be compared.
    """
    found = enough(
        load.sizes, service_class=terms.service_class, guards=terms.guards, expect=terms.expect, noise=terms.noise
    )
    if longer is not None:
        before = longer.earlier.phases[0].measurement
        found = {name: one for name, one in found.items() if (level := before.level(name)) and level.may_end}
    return replace(load, enough=found)


def recorded(attempt: Attempt, judgement: Judgement, process: tuple[int, int | None] | None, **more: Any) -> Trial:
    """The verdict goes on record, with the process that it is about, and all that it takes to compute it once more."""
    attempt.recorder.note("verdict", {"host": attempt.target.name, "process": process, **judgement.to_json(), **more})
    return Trial(judgement, process)


def terms_of(attempt: Attempt, acceptance: Acceptance) -> Terms:
    """What the change is held against on an instance."""
    service, step = attempt.target.service, acceptance.step
    guards = acceptance.plan.guards(service.slo, step)
    return Terms(
        service_class=service.class_,
        slo=tuple(guard for guard in guards if guard.source == "slo"),
        accept=tuple(guard for guard in guards if guard.source == "accept"),
        expect=step.expect.gains,
        declared=declared(attempt),
        changes_answers=attempt.contact.wanted.changes_answers,
    )


def _require_usable(attempt: Attempt, acceptance: Acceptance, before: Phase) -> None:
    """A baseline that nothing can be compared with ends the step here: the change would cost its restarts in vain."""
    service, step = attempt.target.service, acceptance.step
    reasons = unusable(
        before.measurement,
        service_class=service.class_,
        guards=acceptance.plan.guards(service.slo, step),
        expect=step.expect.gains,
        hard_events=before.events,
        unread_conditions=before.conditions.unknown(),
    )
    if reasons:
        found = "; ".join(str(reason) for reason in reasons)
        text = f"{attempt.target.name}: the baseline cannot be used, so the change was not tried there: {found}"
        raise NotKept(BASELINE_INVALID, f"{text}. What to do: {advice(reasons)}")


def started(attempt: Attempt, what: str, reason: str = DID_NOT_START) -> Ready:
    """Wait for a start. Raises NotKept, for the reason, where it does not become ready."""
    result = attempt.wait()
    if isinstance(result, NotReady):
        raise NotKept(reason, f"{attempt.target.name}: {what} did not become ready: {result.text}")
    attempt.tools.reporter.note(f"{attempt.target.name}: answers after {result.seconds:.1f} s")
    return result


def started_saved(attempt: Attempt) -> Ready:
    """Wait for a start on the saved configuration: that it fails is nothing to hold against the change."""
    return started(attempt, "the saved configuration", SAVED_DID_NOT_START)


def prove_effect(attempt: Attempt, ready: Ready) -> None:
    """Raises NotKept where the value did not arrive, or something else moved."""
    target = attempt.target
    observed = target.inspect()
    attempt.tools.secrets.learn_observed(observed)
    effect = effect_of(attempt.contact, observed, ready.pages, list(ready.log), attempt.tools.secrets)
    attempt.recorder.note("effective.outcome", {"host": target.name, **effect.to_json()})
    name = attempt.contact.wanted.name
    if not effect.effective:
        seen = getattr(effect.after, effect.furthest)
        raise NotKept(
            "not_effective",
            f"{target.name}: {name} was applied but is not effective: the {effect.furthest} says {seen}",
        )
    if effect.also_moved:
        raise NotKept(
            "undeclared_change",
            f"{target.name}: more moved than {name}: {', '.join(effect.also_moved)}; the figures cannot be told apart",
        )


def run_checks(attempt: Attempt, acceptance: Acceptance) -> None:
    """The operator's own checks. Raises NotKept where one fails."""
    if not acceptance.checks:
        return
    name = attempt.target.name
    with attempt.recorder.acting("checks", {"host": name, "files": list(acceptance.checks)}) as outcome:
        result = attempt.tools.checks.run(acceptance.checks, attempt.target.address)
        report = attempt.tools.secrets.redactor.text(result.report)
        outcome.update(host=name, passed=result.passed, failed=result.failed, report=report)
        attempt.tools.interrupts.check()
        if not result.ok:
            raise NotKept("check_failed", f"{name}: {result.failed} of the plan's checks failed")


def declared(attempt: Attempt) -> set[str]:
    """Every name under which the one declared change may show."""
    wanted, edit = attempt.contact.wanted, attempt.contact.edit
    return {*wanted.names, *attempt.contact.edited_paths, *edit.place.key.names}
