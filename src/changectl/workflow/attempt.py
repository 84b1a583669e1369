"""One step on one instance: everything that is done to it. Each act is journaled; each has its way back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.errors import Refused
from changectl.core.observed import Capture
from changectl.workflow.contact import Contact, sha256
from changectl.workflow.ready import NotReady, Ready, deadline_for, wait_ready
from changectl.workflow.recorder import Recorder
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

STOP_GRACE = 90.0  # seconds, where the manager does not say how long a stop may take
PLAY_SPARE = 120.0  # seconds beyond the stop's grace that a play may take


@dataclass
class Attempt:
    """What the run does to one instance in one step.

    Attributes:
        contact: the instance as it was found.
        recorder: the step's journal.
        generation: this run's right to act; grows when somebody takes the run over.
        captured: whether the host holds the snapshot.
        touched: whether anything that the service sees may have been changed.
        outage: seconds in which this instance was stopped or loading.
    """

    contact: Contact
    recorder: Recorder
    tools: Tools
    generation: int = 1
    captured: Capture | None = None
    touched: bool = False
    outage: float = 0.0
    log_cursor: str | None = None  # the log's end before the last start
    _stopped_at: float = 0.0

    @property
    def target(self) -> Target:
        """The instance."""
        return self.contact.target

    @property
    def host_run(self) -> dict[str, Any]:
        """Which run and generation a host call belongs to."""
        return self.target.with_state({"run": host_run_id(self.recorder), "generation": self.generation})

    @property
    def stop_timeout(self) -> float:
        """How long a stop may take on this host."""
        grace = self.target.manager.stop_grace(self.contact.observed.manager.show)
        return STOP_GRACE if grace is None or grace == float("inf") else grace

    @property
    def daemon_reload(self) -> bool:
        """Whether the manager has to re-read its files after the edit."""
        return self.target.manager.needs_daemon_reload_after(self.contact.edit.path)

    def salt(self, letter: str) -> str:
        """Different for every phase, so that no cache of an earlier one answers; in the record, so repeatable."""
        return sha256(f"{self.recorder.run}/{self.recorder.step}/{self.target.name}/{letter}".encode())[:16]

    def save(self) -> Capture:
        """Save everything on the host and, encrypted, here; the host proves that it can be brought back."""
        files = self.contact.snapshot_files()
        extra = self.snapshot_extra()
        with self.recorder.acting("capture", {"host": self.target.name, "files": files}) as outcome:
            args = {**self.host_run, "files": files, "manager": self.target.manager_argument, "process": True,
                    "extra": extra}  # fmt: skip
            answer = Capture.read(self.target.ask("capture", args))
            outcome.update(host=self.target.name, restorable=answer.restorable, problems=answer.problems,
                           digest=answer.digest, copy=self._copy(extra), files=_digests(answer))  # fmt: skip
        self.captured = answer
        return answer

    def snapshot_extra(self) -> dict[str, Any]:
        """What belongs to a snapshot beside the files: host, model, mounts and network come with the host's answer."""
        return {
            "host": dict(self.contact.host_answer),
            "model": self.contact.model.model_dump(mode="json"),
            "values": {values.name: [str(values.file), str(values.process), str(values.engine)]
                       for values in self.contact.values},
        }  # fmt: skip

    def _copy(self, extra: Mapping[str, Any]) -> str:
        """The controller's own encrypted copy, for the day when the host is gone."""
        observed = self.contact.observed
        process = observed.process.model_dump(mode="json") if observed.process else None
        files = {path: facts.model_dump(mode="json") for path, facts in observed.files.items()}
        pages = {name: {"status": page.status, "body": page.body} for name, page in self.contact.pages.items()}
        data = {"format": 1, "files": files, "process": process, "pages": pages, **extra}
        return self.tools.records.put_snapshot(
            host_run_id(self.recorder), self.target.name, json.dumps(data, sort_keys=True).encode()
        )

    def stage(self, data: bytes) -> str:
        """Lay bytes into the run's folder on the host, named by digest; nothing sees them there."""
        digest = sha256(data)
        args = {**self.host_run, "sha256": digest, "content": base64.b64encode(data).decode()}
        self.target.ask("stage", args)
        return digest

    def change(self) -> None:
        """Write the new bytes and start the service anew, by playbook."""
        edit = self.contact.edit
        staged = self.stage(edit.after)
        write = {"path": edit.path, "expect": sha256(edit.before), "staged": staged}
        self._about_to_start()
        self.touched = True
        with (
            self.tools.interrupts.shielded(),
            self.recorder.acting("write", {"host": self.target.name, **write, "play": "apply"}) as outcome,
        ):
            result = self._play("apply", {"changectl_writes": [write]}, action="restart", drop=self._dropped())
            outcome.update(host=self.target.name, answers=[_short(answer) for answer in result])

    def restart(self) -> None:
        """A fresh start on the configuration as it is, for a baseline that is comparable with the trial."""
        self._about_to_start()
        self.touched = True
        with self.tools.interrupts.shielded(), self.recorder.acting("restart", {"host": self.target.name}) as outcome:
            result = self._play("service", {}, action="restart")
            outcome.update(host=self.target.name, answers=[_short(answer) for answer in result])

    def restore(self) -> None:
        """Bring the saved files back and start the service on them, by playbook."""
        self._about_to_start()
        with self.recorder.acting("restore", {"host": self.target.name, "play": "restore"}) as outcome:
            result = self._play("restore", {})
            outcome.update(host=self.target.name, answers=[_short(answer) for answer in result])

    def _about_to_start(self) -> None:
        self.log_cursor = self.target.status().cursor
        self._stopped_at = self.tools.clock.monotonic()

    def _play(
        self, play: str, variables: Mapping[str, Any], *, action: str | None = None, drop: list[str] | None = None
    ) -> list[dict[str, Any]]:
        run = self.host_run
        service = {
            "daemon_reload": self.daemon_reload,
            "reset_failed": True,
            "stop_timeout": self.stop_timeout,
            "environment_from_snapshot": True,
            "environment_drop": drop or [],
            **({"action": action} if action else {}),
        }
        common = {
            "changectl_run": run["run"],
            "changectl_generation": run["generation"],
            "changectl_manager": self.target.manager_argument,
            "changectl_service": service,
            **({"changectl_state_dir": run["state_dir"]} if "state_dir" in run else {}),
        }
        timeout = self.stop_timeout + PLAY_SPARE
        result = self.tools.playbooks.run(play, self.target.address, {**common, **variables}, timeout=timeout)
        return list(result.answers)

    def _dropped(self) -> list[str]:
        """Variables that a start command must not inherit from the old process: the changed one gets its new value."""
        wanted = self.contact.wanted
        names = [wanted.name] if wanted.setting is None else [wanted.setting.env]
        return [name for name in names if name]

    def wait(self) -> Ready | NotReady:
        """Wait until the service that was just started answers; the outcome is recorded either way."""
        last = self.tools.memory.load_seconds(self.target.service.service)
        deadline = deadline_for(self.target, last)
        self.recorder.note("ready.intent", {"host": self.target.name, "deadline": deadline.seconds,
                                            "deadline_source": deadline.source})  # fmt: skip
        result = wait_ready(
            self.target, deadline, self.log_cursor, self.tools.clock, self.tools.reporter,
            self.tools.interrupts.check, last,
        )  # fmt: skip
        self.outage += self.tools.clock.monotonic() - self._stopped_at
        body: dict[str, Any] = {"host": self.target.name, "ok": isinstance(result, Ready), "seconds": result.seconds,
                                "deadline": deadline.seconds, "deadline_source": deadline.source}  # fmt: skip
        if isinstance(result, NotReady):
            redact = self.tools.secrets.redactor.text
            cause = result.cause
            body |= {
                "reason": result.reason,
                "message": redact(result.text),
                "log": redact("\n".join(result.log[-40:])),
            }
            body |= {} if cause is None else {"cause": cause.cause, "line": redact(cause.line), "hint": cause.hint}
        else:
            body["detail"] = result.detail
        self.recorder.note("ready.outcome", body)
        return result

    def require_restorable(self) -> None:
        """Raises Refused unless the host proved that the saved state can be brought back."""
        if self.captured is None or not self.captured.restorable:
            raise Refused(f"{self.target.name}: the saved files cannot be restored", reason="not_restorable")


def host_run_id(recorder: Recorder) -> str:
    """The name of a step's run folder on hosts: every step has a snapshot of its own."""
    return f"{recorder.run}.{recorder.step}"


def _digests(capture: Capture) -> dict[str, Any]:
    return {path: None if file is None else file.sha256 for path, file in capture.files.items()}


def _short(answer: Mapping[str, Any]) -> dict[str, Any]:
    """What of a host's answer belongs into the journal."""
    return {
        key: value for key, value in answer.items() if isinstance(value, str | int | float | bool) or key == "files"
    }
