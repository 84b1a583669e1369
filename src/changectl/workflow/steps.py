"""One step: prepared on all instances, then tried and kept on one after the other; what is not kept is undone."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress

from changectl.core.declared.placing import Placed
from changectl.core.digest import sha256
from changectl.core.errors import ChangectlError, Refused
from changectl.core.history.events import STEP_CLOSED
from changectl.core.incident import INCIDENT
from changectl.core.judging.judgement import Verdict
from changectl.core.lease import run_folder
from changectl.core.lifecycle import INTERRUPTED, UNEXPECTED, Ending, Outcome
from changectl.core.precheck import CheckResult, reason, refusal
from changectl.core.trial.power import Power
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.calibrate import CALIBRATED_ALREADY, calibrate, to_measure
from changectl.workflow.contact import Contact, assert_from, make_contact, open_target
from changectl.workflow.incident import as_found, without_waived
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds, right_of
from changectl.workflow.leaving import watching
from changectl.workflow.not_kept import NotKept
from changectl.workflow.power import power_of
from changectl.workflow.prechecks import check
from changectl.workflow.recorder import Recorder
from changectl.workflow.rollout import roll_out
from changectl.workflow.side_by_side import refuse_shared_files
from changectl.workflow.step_run import StepRun
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.trial import Acceptance
from changectl.workflow.undo import undo

_KEPT = {
    Verdict.IMPROVED: "kept: the expected gain is there, and nothing got worse",
    Verdict.UNCHANGED: "kept: nothing got worse, and no gain was promised",
    Verdict.NO_GROSS_HARM: "kept: no gross harm was seen; the expected gain was not judged",
}


def run_step(placed: Sequence[Placed], acceptance: Acceptance, recorder: Recorder, tools: Tools) -> Ending:
    """Carry out one step; whatever happens, it ends kept, or undone and proven, or says that a person is needed."""
    recorder.note("step.started", {"change": acceptance.step.change.describe()})
    run = StepRun(tools, recorder, acceptance, all_back=acceptance.plan.on_partial == "revert_all")
    with ExitStack() as doors:
        doors.enter_context(watching(tools, lambda: run.held))
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
    run.recorder.note(STEP_CLOSED, {"outcome": ending.outcome.value, "verdict": verdict, "reason": ending.reason,
                                    "text": ending.text, "outage_seconds": round(run.outage, 3),
                                    "instances": run.instances})  # fmt: skip
    return ending


def _story(run: StepRun, placed: Sequence[Placed], doors: ExitStack) -> Ending:
    try:
        contacts = run.contacts = [_contact(run, one, doors) for one in placed]
        if run.acceptance.calibration is not None:
            contacts = run.contacts = to_measure(run, run.acceptance.calibration)
        refuse_shared_files(contacts)
        if not any(contact.takes_part for contact in contacts):
            _checked(run, contacts)
            text = "the configuration already says so: nothing to do"
            text = text if run.acceptance.calibration is None else CALIBRATED_ALREADY
            return _close(run, Ending(Outcome.KEPT, "nothing_to_do", text))
        run.attempts = [
            _attempt(run, contact)
            for contact in contacts
            if contact.takes_part  # what has the value already is only looked at
        ]
        for attempt in run.attempts:
            attempt.save()
        _checked(run, contacts)
        if run.acceptance.calibration is not None:
            return _recorded(run, calibrate(run, run.acceptance.calibration))
        roll_out(run)
        return _recorded(run, _kept(run))
    except NotKept as cause:
        return undo(run, cause.reason, str(cause))
    except Interrupted as cause:
        return undo(run, INTERRUPTED, str(cause))
    except ChangectlError as cause:
        return undo(run, cause.reason, str(cause))
    except Exception as cause:  # noqa: BLE001 - whatever it is, the saved configuration comes back first
        return undo(run, UNEXPECTED, f"{type(cause).__name__}: {cause}")


def _recorded(run: StepRun, ending: Ending) -> Ending:
    """Kept is what is recorded as kept: if that fails, all of it goes back."""
    try:
        return _close(run, ending)
    except BaseException:
        run.all_back = True
        raise


def _attempt(run: StepRun, contact: Contact) -> Attempt:
    return Attempt.of(contact, run.leases[contact.target.name], run.recorder, run.tools, spared=_noticed(run))


def _noticed(run: StepRun) -> bool:
    """Whether users may notice it when an instance is out of service."""
    return run.acceptance.plan.outage is not None or run.acceptance.incident is not None


def _contact(run: StepRun, placed: Placed, doors: ExitStack) -> Contact:
    target = open_target(placed, run.tools)
    doors.callback(target.close)
    _lease(run, target, doors)
    contact = make_contact(target, run.acceptance.step, run.tools)
    contact = as_found(contact) if run.acceptance.incident else contact
    if not contact.changes_nothing:
        assert_from(contact)  # a plan that was carried out already is done, not wrong
    facts = {"hello": contact.hello.model_dump(), **({} if contact.measured_alone else {"values": _values(contact)})}
    run.recorder.note("contact", {"host": target.name, "facts": facts})
    edit = contact.edit
    diff = run.tools.secrets.redactor.diff(edit.before, edit.after, edit.path)
    run.recorder.note("edit", {"host": target.name, "path": edit.path, "before_sha": sha256(edit.before),
                               "after_sha": sha256(edit.after), "diff": diff})  # fmt: skip
    if not contact.measured_alone:
        run.tools.reporter.note(f"{target.name}: {run.acceptance.step.change.describe()} in {edit.path}")
    return contact


def _values(contact: Contact) -> dict[str, str]:
    three = contact.three
    places = {"file": str(three.file), "process": str(three.process), "engine": str(three.engine)}
    return {"name": three.name, **places}


def _lease(run: StepRun, target: Target, doors: ExitStack) -> None:
    """Take the host before anything is read there, so that nobody else changes it meanwhile."""
    folder = run_folder(run.recorder.run, run.recorder.step, target.number)
    right = right_of(target, folder, run.leases.values())
    lease = HostLease(target, run.recorder, run.tools, folder, lease_seconds(target, run.tools), right)
    run.leases[target.name] = lease
    doors.callback(lease.give_back)
    lease.take()


def _checked(run: StepRun, contacts: Sequence[Contact]) -> None:
    """Every pre-check on every instance; all are recorded before any refusal."""
    failing: list[str] = []
    refusing: list[CheckResult] = []
    incident = run.acceptance.incident
    starts = 2 if incident else run.acceptance.plan.effort.starts_in_a_row(len(contacts))
    captures = {attempt.target.name: attempt.captured for attempt in run.attempts}
    for contact in contacts:
        capture = captures.get(contact.target.name)
        results = check(
            contact,
            run.tools,
            starts=starts,
            capture=capture,
            preview=capture is None,
            load=run.acceptance.load,
            noticed=_noticed(run),
            power=_power(run, contact, contacts),
        )
        results = without_waived(contact, results, run.tools) if incident else results
        run.recorder.note("precheck", {"host": contact.target.name, "results": [
            {"name": result.name, "level": result.level, "state": result.state, "figure": result.figure,
             "detail": run.tools.secrets.redactor.text(result.detail)} for result in results]})  # fmt: skip
        failing += [f"{contact.target.name}: {line}" for line in refusal(results)]
        refusing += results
    if failing:
        raise Refused("\n".join(run.tools.secrets.redactor.text(line) for line in failing), reason=reason(refusing))
    for attempt in run.attempts:
        attempt.require_restorable()


def _power(run: StepRun, contact: Contact, contacts: Sequence[Contact]) -> Power:
    acceptance = run.acceptance
    if acceptance.calibration is not None:
        return Power(spared="nothing is judged in a calibration")
    if acceptance.longer:
        return Power(spared="the trial goes on by what its last end said would decide it")
    return power_of(contact, contacts, acceptance.plan, acceptance.step, acceptance.load, run.tools)


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
