"""One step on all instances: prepared everywhere, then tried one after the other, then kept or undone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress

from changectl.core.digest import sha256
from changectl.core.errors import ChangectlError, LeftToHost, Refused
from changectl.core.incident import INCIDENT
from changectl.core.judgement import Judgement, Verdict
from changectl.core.lifecycle import INTERRUPTED, NOTHING_WRITTEN, UNEXPECTED, Ending, Outcome
from changectl.core.placing import Placed
from changectl.core.precheck import refusal
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt, host_run_name
from changectl.workflow.contact import Contact, assert_from, make_contact, open_target
from changectl.workflow.incident import as_found, mend, still_holds, without_waived
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.leaving import watching
from changectl.workflow.not_kept import NotKept
from changectl.workflow.prechecks import check
from changectl.workflow.recorder import Recorder
from changectl.workflow.restore import FAILED, LEFT, REVERTED, Restored, bring_back, collect_evidence, left_alone
from changectl.workflow.step_run import StepRun
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.traffic import back_in_service, out_of_service
from changectl.workflow.trial import Acceptance, still_good, still_written, try_change
from changectl.workflow.watch import watch_step

_KEPT = {
    Verdict.IMPROVED: "kept: the expected gain is there, and nothing got worse",
    Verdict.UNCHANGED: "kept: nothing got worse, and no gain was promised",
    Verdict.NO_GROSS_HARM: "kept: no gross harm was seen; the expected gain was not judged",
}


def run_step(placed: Sequence[Placed], acceptance: Acceptance, recorder: Recorder, tools: Tools) -> Ending:
    """Carry out one step; whatever happens, it ends kept, or undone and proven, or says that a person is needed."""
    recorder.note("step.started", {"change": acceptance.step.change.describe()})
    run = StepRun(tools, recorder, acceptance)
    with ExitStack() as doors:
        doors.enter_context(watching(tools, run.leases.values))
        ending = _story(run, placed, doors)
        if not ending.outcome.in_force:
            _close(run, ending)
        _tidy(run, ending)  # after the end is on record: until then the snapshot may be needed
    return ending


def _tidy(run: StepRun, ending: Ending) -> None:
    """Take away what nobody needs any more from the hosts: staged bytes, or all of it where nothing was touched.

    The snapshot of a touched instance stays: it is the way back. After a failed way back everything stays.
    """
    if ending.outcome in (Outcome.REVERT_FAILED, Outcome.REVERT_UNVERIFIED):
        return
    recorder = run.recorder.insisting()  # the end is on record; a gap in what follows it is no reason to fail
    with run.tools.interrupts.ignored():
        for attempt in run.attempts:
            if attempt.captured is not None:
                call = "cleanup" if attempt.touched else "forget"
                body = {"host": attempt.target.name, "call": call, "folder": attempt.host_run_name}
                # What is left behind lies in the run's own folder, readable by its owner only: no reason either.
                with suppress(Exception), recorder.acting("tidy", body) as outcome:
                    outcome.update(body)
                    attempt.target.ask(call, attempt.host_run)


def _close(run: StepRun, ending: Ending) -> Ending:
    verdict = run.judgement.verdict.value if run.judgement else None
    run.recorder.note("step.closed", {"outcome": ending.outcome.value, "verdict": verdict, "reason": ending.reason,
                                      "text": ending.text, "outage_seconds": round(run.outage, 3)})  # fmt: skip
    return ending


def _story(run: StepRun, placed: Sequence[Placed], doors: ExitStack) -> Ending:
    try:
        contacts = [_contact(run, one, doors) for one in placed]
        if all(contact.changes_nothing for contact in contacts):
            _checked(run, contacts)
            text = "the configuration already says so: nothing to do"
            return _close(run, Ending(Outcome.KEPT, "nothing_to_do", text))
        run.attempts = [
            Attempt.of(contact, run.leases[contact.target.name], run.recorder, run.tools)
            for contact in contacts
            if not contact.changes_nothing  # what has the value already is only looked at
        ]
        for attempt in run.attempts:
            attempt.save()
        _checked(run, contacts)
        for attempt in run.attempts:
            _try(run, attempt, fresh_baseline=len(placed) > 1)
            back_in_service(attempt)  # what serves users stays enough: one instance at a time
        return _close(run, _keep(run))  # kept is what is recorded as kept: if that fails, it goes back
    except NotKept as cause:
        return _undo(run, cause.reason, str(cause))
    except Interrupted as cause:
        return _undo(run, INTERRUPTED, str(cause))
    except ChangectlError as cause:
        return _undo(run, cause.reason, str(cause))
    except Exception as cause:  # noqa: BLE001 - whatever it is, the saved configuration comes back first
        return _undo(run, UNEXPECTED, f"{type(cause).__name__}: {cause}")


def _contact(run: StepRun, placed: Placed, doors: ExitStack) -> Contact:
    target = open_target(placed, run.tools)
    doors.callback(target.close)
    _lease(run, target, doors)
    contact = make_contact(target, run.acceptance.step, run.tools)
    contact = as_found(contact) if run.acceptance.incident else contact
    if not contact.changes_nothing:
        assert_from(contact)  # a plan that was carried out already is done, not wrong
    facts = {"name": contact.three.name, "file": str(contact.three.file), "process": str(contact.three.process),
             "engine": str(contact.three.engine)}  # fmt: skip
    run.recorder.note("contact", {"host": target.name, "facts": {"hello": contact.hello.model_dump(), "values": facts}})
    edit = contact.edit
    diff = run.tools.secrets.redactor.diff(edit.before, edit.after, edit.path)
    run.recorder.note("edit", {"host": target.name, "path": edit.path, "before_sha": sha256(edit.before),
                               "after_sha": sha256(edit.after), "diff": diff})  # fmt: skip
    run.tools.reporter.note(f"{target.name}: {run.acceptance.step.change.describe()} in {edit.path}")
    return contact


def _lease(run: StepRun, target: Target, doors: ExitStack) -> None:
    """Take the host before anything is read there, so that nobody else changes it meanwhile."""
    folder = host_run_name(run.recorder.run, run.recorder.step)
    lease = HostLease(target, run.recorder, run.tools, folder, lease_seconds(target, run.tools))
    run.leases[target.name] = lease
    doors.callback(lease.give_back)
    lease.take()


def _checked(run: StepRun, contacts: Sequence[Contact]) -> None:
    """Every pre-check on every instance; all are recorded before any refusal."""
    failing = []
    incident = run.acceptance.incident
    starts = 2 if incident else run.acceptance.plan.effort.starts_in_a_row(len(contacts))
    captures = {attempt.target.name: attempt.captured for attempt in run.attempts}
    for contact in contacts:
        capture = captures.get(contact.target.name)
        results = check(
            contact, run.tools, starts=starts, capture=capture, preview=capture is None, load=run.acceptance.load
        )
        results = without_waived(contact, results, run.tools) if incident else results
        run.recorder.note("precheck", {"host": contact.target.name, "results": [
            {"name": result.name, "level": result.level, "state": result.state, "figure": result.figure,
             "detail": run.tools.secrets.redactor.text(result.detail)} for result in results]})  # fmt: skip
        failing += [f"{contact.target.name}: {line}" for line in refusal(results)]
    if failing:
        raise Refused("\n".join(run.tools.secrets.redactor.text(line) for line in failing), reason="precheck_failed")
    for attempt in run.attempts:
        attempt.require_restorable()


def _try(run: StepRun, attempt: Attempt, *, fresh_baseline: bool) -> None:
    """Try one instance; the verdict decides whether the next one follows."""
    run.tools.interrupts.check()
    out_of_service(attempt)
    if run.acceptance.incident is not None:
        run.trials.append(mend(attempt, run.acceptance, run.acceptance.incident))
        return
    run.trials.append(try_change(attempt, run.acceptance, fresh_baseline=fresh_baseline))
    judgement = run.judgements[-1]
    match judgement.verdict:
        case Verdict.REGRESSED:
            raise NotKept("regressed", "; ".join(str(reason) for reason in judgement.reasons), judgement)
        case Verdict.INVALID:
            raise NotKept("invalid", "; ".join(str(reason) for reason in judgement.reasons), judgement)
        case Verdict.UNCHANGED if judgement.decision == "revert":
            raise NotKept("unchanged", "; ".join(str(reason) for reason in judgement.reasons), judgement)
    if judgement.undecided and not _keep_unjudged(run, judgement):
        raise NotKept("inconclusive", "; ".join(str(reason) for reason in judgement.reasons), judgement)


def _keep_unjudged(run: StepRun, judgement: Judgement) -> bool:
    policy = run.acceptance.step.on_inconclusive
    if policy == "ask":
        reasons = "; ".join(str(reason) for reason in judgement.reasons)
        answer = run.tools.ask(f"The evidence does not suffice ({reasons}). Keep the change?")
        run.recorder.note("asked", {"question": "keep an inconclusive change", "answer": answer})
        return answer
    return policy == "keep"


def _keep(run: StepRun) -> Ending:
    incident = run.acceptance.incident
    watch_step(list(zip(run.attempts, run.trials, strict=True)), run.acceptance)
    for attempt, trial in zip(run.attempts, run.trials, strict=True):
        run.tools.interrupts.check()
        if incident is not None:
            still_holds(attempt, trial, incident)
        else:
            still_good(attempt.target, trial.process, run.tools.clock)
    for attempt in run.attempts:
        still_written(attempt.target, attempt.edit_path, sha256(attempt.contact.edit.after))
    run.tools.interrupts.check()  # the last moment: what a host has on record as kept is kept
    with run.tools.interrupts.ignored():
        for attempt in run.attempts:
            attempt.lease.disarm("kept")
    return _kept(run)


def _kept(run: StepRun) -> Ending:
    """The hosts have on record that it is kept."""
    incident, watch = run.acceptance.incident, run.acceptance.step.watch
    watched = "" if watch is None else f"; watched for {format_duration(watch)}, and nothing broke"
    if incident is not None:
        text = f"it runs on the change; the live guards held for {incident.seconds:.0f} s, and nobody has judged it"
        text += watched
        return Ending(Outcome.KEPT_UNJUDGED, INCIDENT, text)
    if any(judgement.undecided for judgement in run.judgements):
        text = f"kept without a verdict, as the plan or a person decided{watched}"
        return Ending(Outcome.KEPT_UNJUDGED, "inconclusive", text)
    text = _KEPT[run.judgement.verdict if run.judgement else Verdict.NO_GROSS_HARM] + watched
    return Ending(Outcome.KEPT, "kept", text)


def _undo(run: StepRun, reason: str, text: str) -> Ending:
    """Bring back every instance that was touched; further signals wait until that is done."""
    text = run.tools.secrets.redactor.text(text)
    if not run.touched:
        aborted = reason in (INTERRUPTED, UNEXPECTED)
        return Ending(Outcome.ABORTED if aborted else Outcome.REFUSED, reason, text)
    run.tools.reporter.note(f"not kept ({reason}): {text}")
    with run.tools.interrupts.ignored():
        ends = [_back(run, attempt, text) for attempt in run.touched if not _alone(run, attempt, reason)]
    _leave(run, ends)
    failed = [end for end in ends if end.outcome != REVERTED]
    if failed:
        worst = FAILED if any(end.outcome == FAILED for end in failed) else failed[0].outcome
        details = run.tools.secrets.redactor.text("\n".join(end.detail for end in failed))
        return Ending(Outcome(worst), reason, f"{text}\n{details}")
    if reason in NOTHING_WRITTEN and not ends:
        return Ending(Outcome.REFUSED, reason, text)
    if run.acceptance.incident is not None:  # whether it answers now is not a matter of course
        text = run.tools.secrets.redactor.text("\n".join([text, *(end.detail for end in ends)]))
    return Ending(Outcome.REVERTED, reason, text)


def _leave(run: StepRun, ends: Sequence[Restored]) -> None:
    """Raises LeftToHost where a host with an armed dead-man does not answer: the run stays open until `recover`."""
    if any(end.outcome == LEFT for end in ends):
        text = run.tools.secrets.redactor.text("\n".join(end.detail for end in ends if end.outcome != REVERTED))
        run.recorder.insisting().note("contact.lost", {"text": text})
        raise LeftToHost(f"{text}\nWhen they answer again: changectl recover {run.recorder.run}")


def _alone(run: StepRun, attempt: Attempt, reason: str) -> bool:
    """Whether the host refused to write on this instance, and it is proven to run untouched."""
    attempt.insist()
    if not attempt.refused or not left_alone(attempt, edited_by_other=reason == "changed_by_other"):
        return False
    run.tools.reporter.note(f"{attempt.target.name}: nothing was written, and the service runs as before")
    attempt.stand_down()
    return True


def _back(run: StepRun, attempt: Attempt, text: str) -> Restored:
    """Bring one instance back; what failed there is kept as evidence first."""
    attempt.insist()
    collect_evidence(attempt, text)
    end = bring_back(attempt)
    run.tools.reporter.note(end.detail)
    return end
