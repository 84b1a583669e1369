"""A change in an incident: no baseline and no load; the service is watched live instead, and then kept unjudged.

Everything else is as for every step: the snapshot is proven, the dead-man is armed with the write, and whatever goes
wrong brings the saved state back, sick as that is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from changectl import probes
from changectl.core.counting import counted
from changectl.core.errors import Refused
from changectl.core.incident import GUARD_BROKEN, Incident, failure_line, process_stays, sickness, waive
from changectl.core.precheck import CheckResult, Seen
from changectl.workflow.attempt import Attempt
from changectl.workflow.contact import Contact
from changectl.workflow.not_kept import NotKept
from changectl.workflow.ready import Ready
from changectl.workflow.tools import Tools
from changectl.workflow.trial import Acceptance, Trial, prove_effect, run_checks, started
from changectl.workflow.watch_look import real_answer

LOOK = 1.0  # seconds between two looks at process and log
_NO_PROCESS = Seen(known=False, why="no process that stays")


def as_found(contact: Contact) -> Contact:
    """The contact with what is wrong with the service, and without a process that nothing can be compared with.

    What pages and log tell without such a process is about another one, or about an earlier start.

    Raises:
        Refused: nobody can tell as whom the service would be started.
    """
    target = contact.target
    stays = process_stays(contact.observed, contact.status)
    readiness = target.engine.readiness(contact.pages, target.service.model.name)
    contact = replace(contact, sick=sickness(contact.status, readiness, stays=stays))
    if stays or not contact.sick:
        return contact
    _require_known_user(contact)
    return replace(
        contact,
        observed=contact.observed.model_copy(update={"process": None}),
        values=tuple(replace(row, process=_NO_PROCESS, engine=_NO_PROCESS) for row in contact.values),
    )


def _require_known_user(contact: Contact) -> None:
    """Only the running process tells as whom a start command's service runs; as root it would leave root's files."""
    if contact.target.service.manager.name == "command" and contact.hello.uid in (0, None):
        text = (
            f"{contact.target.name}: the service does not run, so as which user it runs is not known: connect as that "
            "user (ansible_user, or ansible_become_user), or start it by hand first"
        )
        raise Refused(text, reason="other_user")


def without_waived(contact: Contact, results: list[CheckResult], tools: Tools) -> list[CheckResult]:
    """The pre-checks with those as advice that a sick service cannot pass; each is told in a line of its own."""
    reading = {one.check.name for one in probes.all_checks() if one.check.reads_process}
    free = contact.observed.port_asked and contact.observed.port_owner is None
    checked, waived = waive(results, reading, port_is_free=free)
    for one in waived:
        tools.reporter.note(tools.secrets.redactor.text(f"{contact.target.name}: {one.name}: {one.detail}"))
    return checked


def mend(attempt: Attempt, acceptance: Acceptance, incident: Incident) -> Trial:
    """Change one instance, prove that the change arrived, and watch it live.

    Raises:
        NotKept: it did not start, did not arrive, moved something else, failed the operator's checks, or broke a guard.
        ChangectlError: it could not be carried out, or not be watched.
    """
    attempt.change()
    ready = started(attempt, "the new configuration")
    prove_effect(attempt, ready)
    run_checks(attempt, acceptance)
    watch(attempt, incident, ready)
    return Trial(None, ready.status.identity)


def watch(attempt: Attempt, incident: Incident, ready: Ready) -> None:
    """The live guards: no restart, no known failure line, a real answer every few seconds, for the whole time.

    Raises:
        NotKept: reason `guard_broken`.
        Interrupted: somebody asked the run to end.
        HostCallError, ContactLost: the host could not be asked; that is no guard that held.
    """
    tools, clock = attempt.tools, attempt.tools.clock
    body = {"host": attempt.target.name, "seconds": incident.seconds, "every": incident.every}
    with attempt.recorder.acting("guards", body) as outcome:
        outcome.update(body)
        guards, begun, asked = _Guards(attempt, ready), clock.monotonic(), -incident.every
        while (elapsed := clock.monotonic() - begun) < incident.seconds:
            tools.interrupts.check()
            guards.look(elapsed)
            if elapsed - asked >= incident.every:
                guards.ask(elapsed)
                asked = elapsed
            outcome["answers"] = guards.answers
            answers = counted(guards.answers, "answer")
            text = f"{attempt.target.name}: watching it live: {answers}, no restart, no failure line"
            tools.reporter.waiting(text, elapsed=elapsed, expected=incident.seconds)
            clock.sleep(LOOK)
    answers = counted(guards.answers, "answer")
    tools.reporter.note(f"{attempt.target.name}: {answers} in {incident.seconds:.0f} s, nothing broke")


def still_holds(attempt: Attempt, trial: Trial, incident: Incident) -> None:
    """The last look before the change counts as kept. Raises NotKept where the watched process is gone or silent."""
    if trial.process is None or attempt.target.status().identity != trial.process:
        raise _broken(attempt, incident.seconds, "the process that was watched does not run any more")
    _Guards(attempt, None).ask(incident.seconds)


@dataclass
class _Guards:
    """What has to hold while a mended service is watched."""

    attempt: Attempt
    ready: Ready | None
    answers: int = 0
    cursor: str | None = None

    def look(self, elapsed: float) -> None:
        """One look at process and log."""
        assert self.ready is not None  # noqa: S101
        first = self.ready.status
        now = self.attempt.target.status(self.cursor or first.cursor)
        self.cursor = now.cursor or self.cursor
        line = failure_line(now.log, self.attempt.target.engine.failure_lines)
        because = f": {line}" if line else ""
        if now.identity is None:
            raise _broken(self.attempt, elapsed, f"its process ended{because}")
        if now.identity != first.identity or (now.restarts or 0) > (first.restarts or 0):
            raise _broken(self.attempt, elapsed, f"it was restarted{because}")
        if line:
            raise _broken(self.attempt, elapsed, f"its log shows a known failure{because}")

    def ask(self, elapsed: float) -> None:
        """One real answer."""
        answer = real_answer(self.attempt.target, self.attempt.tools.clock)
        if answer.wrong:
            raise _broken(self.attempt, elapsed, f"it gave no real answer: {answer.wrong}")
        self.answers += 1


def _broken(attempt: Attempt, elapsed: float, what: str) -> NotKept:
    return NotKept(GUARD_BROKEN, f"{attempt.target.name}: {elapsed:.0f} s after it answered, {what}")
