"""The trial on one instance: measure as it is, change, wait, prove that the change arrived, measure again, judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.conditions import single_difference
from changectl.core.judgement import Judgement
from changectl.core.plan import Plan
from changectl.core.step import Step
from changectl.core.verdict import judge_quick
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.effect import effect_of
from changectl.workflow.measure import Phase, measure
from changectl.workflow.ready import NotReady, Ready


class NotKept(Exception):
    """The change must not stay; `reason` is a stable word, the text says why."""

    def __init__(self, reason: str, text: str, judgement: Judgement | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.judgement = judgement


@dataclass(frozen=True)
class Acceptance:
    """What the change is held against."""

    plan: Plan
    step: Step
    load: LoadPlan
    checks: Sequence[str]  # testinfra files, absolute


def try_change(attempt: Attempt, acceptance: Acceptance, *, fresh_baseline: bool) -> Judgement:
    """Change one instance and judge it.

    Raises:
        NotKept: it did not start, did not arrive, moved something else, or failed the operator's checks.
        ChangectlError: the trial could not be carried out.
    """
    before = _baseline(attempt, acceptance, fresh_baseline)
    attempt.change()
    ready = _started(attempt, "the new configuration")
    _prove_effect(attempt, ready)
    after = measure(attempt, "B", acceptance.load, load_time=ready.seconds, fresh_start=True)
    _run_checks(attempt, acceptance)
    judgement = _judge(attempt, acceptance, before, after)
    attempt.recorder.note("verdict", {"host": attempt.target.name, **judgement.to_json()})
    return judgement


def _baseline(attempt: Attempt, acceptance: Acceptance, fresh: bool) -> Phase:
    if not fresh:
        attempt.tools.reporter.note(f"{attempt.target.name}: baseline without a restart (the only instance)")
        return measure(attempt, "A", acceptance.load, load_time=None, fresh_start=False)
    attempt.restart()
    ready = _started(attempt, "the saved configuration")
    return measure(attempt, "A", acceptance.load, load_time=ready.seconds, fresh_start=True)


def _started(attempt: Attempt, what: str) -> Ready:
    result = attempt.wait()
    if isinstance(result, NotReady):
        raise NotKept("did_not_start", f"{attempt.target.name}: {what} did not become ready: {result.text}")
    attempt.tools.reporter.note(f"{attempt.target.name}: answers after {result.seconds:.1f} s")
    return result


def _prove_effect(attempt: Attempt, ready: Ready) -> None:
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


def _run_checks(attempt: Attempt, acceptance: Acceptance) -> None:
    if not acceptance.checks:
        return
    result = attempt.tools.checks.run(acceptance.checks, attempt.target.address)
    attempt.tools.interrupts.check()
    report = attempt.tools.secrets.redactor.text(result.report)
    body = {"host": attempt.target.name, "passed": result.passed, "failed": result.failed, "ok": result.ok}
    attempt.recorder.note("checks.outcome", {**body, "report": report})
    if not result.ok:
        raise NotKept("check_failed", f"{attempt.target.name}: {result.failed} of the plan's checks failed")


def _judge(attempt: Attempt, acceptance: Acceptance, before: Phase, after: Phase) -> Judgement:
    service, step = attempt.target.service, acceptance.step
    guards = acceptance.plan.guards(service.slo, step)
    return judge_quick(
        before.measurement,
        after.measurement,
        service_class=service.class_,
        slo=[guard for guard in guards if guard.source == "slo"],
        accept=[guard for guard in guards if guard.source == "accept"],
        expect=step.expect.gains,
        undeclared_differences=single_difference(before.conditions, after.conditions, _declared(attempt)),
        hard_events=[*before.events, *after.events],
    )


def _declared(attempt: Attempt) -> set[str]:
    """Every name under which the one declared change may show."""
    wanted, edit = attempt.contact.wanted, attempt.contact.edit
    return {*wanted.names, *attempt.contact.edited_paths, *edit.place.key.names}
