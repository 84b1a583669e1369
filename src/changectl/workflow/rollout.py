"""The instances of a step in turn: the first one's trial decides whether others follow, one at a time.

An instance is kept, by its host's own record, before the next one is touched. So at most one is out or unjudged at any
moment, and wherever the run is cut off, every host tells by itself what is to become of it.
"""

from __future__ import annotations

from dataclasses import replace

from changectl.core.declared.effort import QUICK, Effort
from changectl.core.digest import sha256
from changectl.core.errors import ChangectlError
from changectl.core.history.events import TURN
from changectl.core.judging.hardware import Hardware, hardware
from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.lifecycle import NEIGHBOUR_OUT, Outcome
from changectl.core.rollout import look_at
from changectl.workflow.attempt import Attempt
from changectl.workflow.contact import Contact
from changectl.workflow.incident import mend, still_holds
from changectl.workflow.not_kept import NotKept
from changectl.workflow.observe import observe_change
from changectl.workflow.step_run import StepRun
from changectl.workflow.traffic import back_in_service, out_of_service
from changectl.workflow.trial import Trial, still_good, still_written, try_change
from changectl.workflow.watch import watch_step


def roll_out(run: StepRun) -> None:
    """Try and keep one instance after the other.

    Raises:
        NotKept: an instance must not keep the change, or one that was to keep it does not run any more.
        ChangectlError, Interrupted: whatever else ended it. The instances that are kept by then stand in `run.ends`.
    """
    several = len(run.contacts) > 1
    for number, attempt in enumerate(run.attempts, 1):
        run.tools.interrupts.check()
        if number > 1:
            require_others(run, attempt)
        _announce(run, attempt, number)
        trial = run.trials[attempt.target.name] = _look(run, attempt, several=several)
        if trial.judgement is not None:
            _require_good(run, trial.judgement)
        back_in_service(attempt)
        _keep(run, attempt, trial)
    if several:
        _look_again(run)


def _announce(run: StepRun, attempt: Attempt, number: int) -> None:
    """Say and record whose turn it is, and how it is judged."""
    if len(run.contacts) == 1:
        return
    name, count = attempt.target.name, len(run.attempts)
    unlike = _unlike(run, attempt)
    look = look_at(unlike, first=number == 1, live=_live(run))
    run.recorder.note(TURN, {"host": name, "number": number, "of": count, "look": look, "unlike": unlike})
    if number == 1:
        text = f"the first of {count}: what it shows decides whether the others follow"
    elif look == "live":
        text = f"{number} of {count}: judged by what is live there"
    elif look == "short":
        text = f"{number} of {count}: a short check against its own figures"
    else:
        text = f"{number} of {count}: a whole trial of its own, since it is not like the first ({'; '.join(unlike)})"
    run.tools.reporter.note(f"{name}: {text}")


def _live(run: StepRun) -> bool:
    """Whether no load is sent, so that each is judged by itself, and all in the same way."""
    return run.acceptance.incident is not None or run.acceptance.plan.effort.observed_for is not None


def _unlike(run: StepRun, attempt: Attempt) -> list[str]:
    """What of this instance's host and engine is not as where the trial was made."""
    return hardware_of(attempt.contact).unlike(hardware_of(run.attempts[0].contact))


def hardware_of(contact: Contact) -> Hardware:
    """What decides how fast the service is there."""
    version = contact.target.engine.version(contact.pages, contact.status.whole_log)
    return hardware(contact.host_answer, version)


def _look(run: StepRun, attempt: Attempt, *, several: bool) -> Trial:
    """Change one instance and judge it, as far as it takes there."""
    acceptance = run.acceptance
    seconds = acceptance.plan.effort.observed_for
    if seconds is not None and acceptance.incident is None:
        return observe_change(attempt, acceptance, seconds)  # its users are what is looked at: out for the start alone
    out_of_service(attempt)
    if acceptance.incident is not None:
        return mend(attempt, acceptance, acceptance.incident)
    first = attempt is run.attempts[0]
    if not first and look_at(_unlike(run, attempt), first=False) == "short":
        acceptance = replace(acceptance, plan=acceptance.plan.model_copy(update={"effort": Effort(QUICK)}))
    return try_change(attempt, acceptance, fresh_baseline=several)


def _require_good(run: StepRun, judgement: Judgement) -> None:
    """Raises NotKept where the verdict, the plan or a person does not allow to keep it."""
    text = "; ".join(str(reason) for reason in judgement.reasons)
    match judgement.verdict:
        case Verdict.REGRESSED:
            raise NotKept("regressed", text, judgement)
        case Verdict.INVALID:
            raise NotKept("invalid", text, judgement)
        case Verdict.UNCHANGED if judgement.decision == "revert":
            raise NotKept("unchanged", text, judgement)
    if judgement.undecided and not _keep_unjudged(run, text):
        raise NotKept("inconclusive", text, judgement)


def _keep_unjudged(run: StepRun, reasons: str) -> bool:
    policy = run.acceptance.step.on_inconclusive
    if policy == "ask":
        answer = run.tools.ask(f"The evidence does not suffice ({reasons}). Keep the change?")
        run.recorder.note("asked", {"question": "keep an inconclusive change", "answer": answer})
        return answer
    return policy == "keep"


def _keep(run: StepRun, attempt: Attempt, trial: Trial) -> None:
    """Watch it, if the step says so; then the host has it on record that the change stays: that is what makes it so."""
    watch_step([(attempt, trial)], run.acceptance)
    run.tools.interrupts.check()
    _still_good(run, attempt, trial)
    still_written(attempt.target, attempt.edit_path, sha256(attempt.contact.edit.after))
    run.tools.interrupts.check()  # the last moment: what a host has on record as kept is kept
    interrupts = run.tools.interrupts
    # A signal that comes while the host decides ends the rollout after it; with the last instance it comes too late.
    with interrupts.ignored() if attempt is run.attempts[-1] else interrupts.shielded():
        attempt.lease.disarm("kept")
        judged = trial.judgement is not None and not trial.judgement.undecided
        run.ends[attempt.target.name] = (Outcome.KEPT if judged else Outcome.KEPT_UNJUDGED).value


def _still_good(run: StepRun, attempt: Attempt, trial: Trial) -> None:
    if run.acceptance.incident is not None:
        still_holds(attempt, trial, run.acceptance.incident)
    else:
        still_good(attempt.target, trial.process, run.tools.clock)


def require_others(run: StepRun, attempt: Attempt) -> None:
    """Before an instance is taken out, all others have to be in: never are two of them out at a time.

    Raises:
        NotKept: a kept one does not run any more, and goes back; or another one does not answer.
    """
    _require_kept(run)
    if run.acceptance.incident is not None:
        return  # that the others are sick is why this is done
    kept = {one.target.name for one in run.kept}
    for contact in run.contacts:
        target = contact.target
        if target.name in kept or target.name == attempt.target.name:
            continue
        readiness = target.engine.readiness(target.pages(), target.service.model.name)
        if readiness.state != "ready":
            text = f"{target.name} does not answer ({readiness.detail}), so {attempt.target.name} was not taken out too"
            raise NotKept(NEIGHBOUR_OUT, text)


def _look_again(run: StepRun) -> None:
    """The last look, once every host has it on record as kept: a host or signal that fails now changes nothing of that.

    Raises:
        NotKept: a kept instance does not run any more.
    """
    with run.tools.interrupts.ignored():
        for attempt in run.kept:
            try:
                _require_runs(run, attempt)
            except ChangectlError as error:
                text = f"{attempt.target.name} is kept, and could not be looked at once more: {error}"
                run.tools.reporter.note(run.tools.secrets.redactor.text(text))


def _require_kept(run: StepRun) -> None:
    """Raises NotKept where a kept instance does not run any more: it is one that was not kept then."""
    for attempt in run.kept:
        _require_runs(run, attempt)


def _require_runs(run: StepRun, attempt: Attempt) -> None:
    try:
        _still_good(run, attempt, run.trials[attempt.target.name])
    except NotKept:
        del run.ends[attempt.target.name]
        raise
