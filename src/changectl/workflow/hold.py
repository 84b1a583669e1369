"""A run's hold on one instance: start it anew, bring the saved state back, wait until it answers; all journaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from changectl.core.errors import ChangectlError
from changectl.core.observed import Model, Observed
from changectl.core.stopping import stop_timeout
from changectl.workflow.gate import Gate, OpenGate
from changectl.workflow.lease import HostLease
from changectl.workflow.ready import Deadline, NotReady, Ready, deadline_for, wait_ready
from changectl.workflow.ready_record import came_up, failed, went_on
from changectl.workflow.recorder import Recorder
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

PLAY_SPARE = 120.0  # seconds beyond waiting and stopping that a play may take
LOCK_SPARE = 30.0  # seconds beyond the stop of a play that lost its contact until its lock is free


@dataclass
class Hold:
    """What is needed to act on an instance and to bring it back.

    Attributes:
        target: the instance.
        recorder: the journal of the run that acts.
        tools: the ports.
        host_run_name: the run folder on the host that holds the snapshot.
        lease: the right to act there.
        observed: files and process as they were saved.
        model: the model's manifest as it was saved.
        edit_path: the file that the change writes.
        drain: seconds that running requests may take to end before a stop.
        sick: what was wrong with the service in the saved state, so that no more can be proven of it; "": nothing.
        touched: whether anything that the service sees may have been changed.
        restored: whether the host said that the saved files are back and the service was started on them.
        evidence_kept: whether what the change left on the service was kept already, before the saved state was started.
        running: process id and start of the service's process before the last act.
        seen: whether that could be looked at; if not, nobody knows whether the process after the act is a new one.
        act: what was done to the service last: restart, write or restore.
        outage: seconds in which this instance was stopped or loading.
        log_cursor: the log's end before the last start.
        python: the interpreter that the door runs on, where the inventory names none.
        gate: what keeps users away while the instance is stopped.
    """

    target: Target
    recorder: Recorder
    tools: Tools
    host_run_name: str
    lease: HostLease
    observed: Observed
    model: Model
    edit_path: str
    drain: float | None = None
    sick: str = ""
    touched: bool = False
    restored: bool = False
    evidence_kept: bool = False
    running: tuple[int, int | None] | None = None
    seen: bool = False
    act: str = ""
    outage: float = 0.0
    log_cursor: str | None = None
    python: str | None = None
    gate: Gate = field(default_factory=OpenGate)
    _stopped_at: float = 0.0
    _log_end_known: bool = True

    @property
    def leases(self) -> list[HostLease]:
        """The one on its host, and those on what switches its users."""
        return [self.lease, *self.gate.leases]

    @property
    def host_run(self) -> dict[str, Any]:
        """Which run and generation a host call belongs to."""
        return self.target.with_state({"run": self.host_run_name, "generation": self.lease.generation})

    @property
    def stop_timeout(self) -> float:
        """How long a stop may take on this host before what is left is killed."""
        return stop_timeout(self.target.manager.stop_grace(self.observed.manager.show), self.drain)

    @property
    def lock_wait(self) -> float:
        """How long a play waits for an earlier one of ours that lost its contact and is still stopping the service."""
        return self.stop_timeout + LOCK_SPARE

    @property
    def daemon_reload(self) -> bool:
        """Whether the manager has to re-read its files after the edit."""
        return self.target.manager.needs_daemon_reload_after(self.edit_path)

    def restart(self, drop: list[str] | None = None) -> None:
        """A fresh start on the configuration as it is, for a baseline that is comparable with the trial.

        Args:
            drop: variables that a start command must not inherit from the saved process.
        """
        self.about_to_start("restart")
        with self.tools.interrupts.shielded(), self.recorder.acting("restart", {"host": self.target.name}) as outcome:
            result = self.play("service", {}, action="restart", drop=drop)
            outcome.update(host=self.target.name, answers=[short(answer) for answer in result])

    def restore(self) -> None:
        """Bring the file that the change wrote back and start the service on it, whether or not the door answers.

        Only that file: what somebody else did to the others meanwhile is theirs, and the proof names it. Whatever an
        earlier play of this run still does on the host is shut out first, by a higher generation.
        """
        self.restored = False
        self._log_end_known = self._look()
        if not self._log_end_known:
            self.touched, self._stopped_at = True, self.tools.clock.monotonic()
        self.lease.take_over()
        body = {"host": self.target.name, "play": "restore", "path": self.edit_path,
                "generation": self.lease.generation}  # fmt: skip
        with self.recorder.acting("restore", body) as outcome:
            result = self.play("restore", {"changectl_only": [self.edit_path]})
            self.restored = True
            outcome.update(host=self.target.name, answers=[short(answer) for answer in result])

    def insist(self) -> None:
        """From here on a record that cannot be written does not stop anything: the way back matters more."""
        self.recorder = self.lease.recorder = self.recorder.insisting()
        self.gate.insist()

    def stand_down(self) -> None:
        """The saved configuration is proven to run: the dead-man is not needed any more."""
        try:
            self.lease.disarm("reverted")
        except Exception as error:  # noqa: BLE001 - it is back already; the dead-man would compare and do nothing
            self.tools.reporter.note(f"{self.target.name}: its dead-man could not be disarmed: {error}")

    def find_log_end(self) -> None:
        """After a restore: what an unread log holds up to now must not count against the new start."""
        if not self._log_end_known:
            self.log_cursor = self.target.status().cursor

    def _look(self) -> bool:
        try:
            self.about_to_start("restore")
        except ChangectlError:
            self.seen = False
        return self.seen

    def about_to_start(self, act: str) -> None:
        """Remember what runs, where its log ends and since when the instance is out; `act`: what is done to it."""
        self.act = act
        status = self.target.status()
        self.running = (status.process.pid, status.process.start_ticks) if status.process else None
        self.log_cursor = status.cursor
        self._stopped_at = self.tools.clock.monotonic()
        self.touched = self.seen = True

    def play(
        self, play: str, variables: Mapping[str, Any], *, action: str | None = None, drop: list[str] | None = None
    ) -> list[dict[str, Any]]:
        """Run one of our plays on this instance's host; returns the host program's answers."""
        run, service = self.host_run, self._service()
        common = {
            "changectl_run": run["run"],
            "changectl_generation": run["generation"],
            "changectl_manager": self.target.manager_argument,
            "changectl_service": {**service, "environment_drop": drop or [], **({"action": action} if action else {})},
            **self._same_python(),
            "changectl_lock_wait": self.lock_wait,
            **({"changectl_state_dir": run["state_dir"]} if "state_dir" in run else {}),
        }
        timeout = self.lock_wait + self.stop_timeout + PLAY_SPARE
        way_back = {"only": [self.edit_path], "manager": self.target.manager_argument, "service": service}
        with self.lease.arming(way_back) as arming:
            given = {**common, **variables, **arming.variables}
            arming.answers = self.tools.playbooks.run(play, self.target.address, given, timeout=timeout).answers
        if (ends_at := log_end(arming.answers)) is not None:
            # What a crash loop logged until it was stopped must not count against the start that followed.
            self.log_cursor, self._log_end_known = ends_at, True
        return list(arming.answers)

    def _service(self) -> dict[str, Any]:
        """How the host stops and starts the service, on the way there and on the way back."""
        return {
            "daemon_reload": self.daemon_reload,
            "reset_failed": True,
            "stop_timeout": self.stop_timeout,
            "environment_from_snapshot": self.observed.process is not None,
            "environment_drop": [],
            "log_file": self.target.service.log_file,
        }

    def _same_python(self) -> dict[str, str]:
        """The Python that the door found, for the plays too: Ansible's own search may find another, or a broken one.

        What the inventory names counts for both, so nothing is added then.
        """
        named = str(self.target.address.variables.get("ansible_python_interpreter", "auto"))
        if not named.startswith("auto"):
            return {}
        if self.python is None:
            with suppress(ChangectlError):  # a door that is gone must not stop the way back
                self.python = self.target.hello().executable
        return {"ansible_python_interpreter": self.python} if self.python else {}

    def wait(self, longest: Deadline | None = None) -> Ready | NotReady:
        """Wait until the service that was just started answers; the outcome is recorded either way.

        Args:
            longest: a deadline that counts where it is shorter than the usual one.
        """
        last = self.tools.memory.load_seconds(self.target.service.service)
        deadline = deadline_for(self.target, last)
        if longest is not None and longest.seconds < deadline.seconds:
            deadline = longest
        known = {"host": self.target.name, "deadline": deadline.seconds, "deadline_source": deadline.source}
        result = wait_ready(
            self.target,
            deadline,
            self.log_cursor,
            self.tools.clock,
            self.tools.reporter,
            self.tools.interrupts.check,
            last,
            self.host_run_name,
        )
        out = self.tools.clock.monotonic() - self._stopped_at
        if not (isinstance(result, Ready) and self.seen and result.status.identity == self.running):
            self.outage += out  # else there was nothing to do, and the service was never stopped
        self.recorder.note("ready.outcome", {**known, **self._told(result, out)})
        return result

    def _told(self, result: Ready | NotReady, out: float) -> dict[str, Any]:
        if isinstance(result, NotReady):
            return failed(result, self.tools.secrets.redactor.text)
        # Where nobody could look before the act, nobody knows whether this is a new process.
        is_new = self.seen and result.status.identity not in (None, self.running)
        return came_up(result, out, self.act, self._kept_log(result)) if is_new else went_on(result)

    def _kept_log(self, ready: Ready) -> str | None:
        """What the engine said while it started: some tell there alone what they hold, and logs get long."""
        text = self.tools.secrets.redactor.text("\n".join(ready.log))
        if not text:
            return None
        try:
            return self.tools.records.put_blob(text.encode())
        except Exception:  # noqa: BLE001 - a later run will know less; the service matters more
            return None


def log_end(answers: Sequence[Mapping[str, Any]]) -> str | None:
    """Where the log ended between the stop and the start of a play; None: there was no start, or it is not known."""
    parts = [part for answer in answers for part in (answer, answer.get("service"), answer.get("start"))]
    found = [part.get("log_cursor") for part in parts if isinstance(part, Mapping)]
    return next((str(cursor) for cursor in reversed(found) if cursor is not None), None)


def short(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What of a host's answer belongs into the journal."""
    plain = (str, int, float, bool)
    return {key: value for key, value in answer.items() if isinstance(value, plain) or key == "files"}
