"""One step on one instance: save everything, then write the new bytes; each act with intent, outcome and way back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.digest import sha256
from changectl.core.errors import HostCallError, Refused
from changectl.core.lease import run_folder
from changectl.core.observed import Capture
from changectl.core.stopping import drain
from changectl.workflow.balancer import gate_of
from changectl.workflow.contact import Contact
from changectl.workflow.hold import Hold, short
from changectl.workflow.lease import HostLease
from changectl.workflow.recorder import Recorder
from changectl.workflow.tools import Tools


@dataclass(kw_only=True)
class Attempt(Hold):
    """What the run does to one instance in one step.

    Attributes:
        contact: the instance as it was found.
        captured: what the host saved; None: nothing yet.
        wrote: whether the file that the change writes may have been written, once or more often.
        refused: whether the host said that it wrote nothing, the first time when it was asked to.
    """

    contact: Contact
    captured: Capture | None = None
    wrote: bool = False
    refused: bool = False

    @classmethod
    def of(
        cls, contact: Contact, lease: HostLease, recorder: Recorder, tools: Tools, *, spared: bool = False
    ) -> Attempt:
        """The attempt that a step makes on an instance it contacted.

        Args:
            contact: the instance.
            lease: the right to act on its host.
            recorder: the journal of the step.
            tools: the ports.
            spared: whether the plan allows that users notice it when the instance is out of service.
        """
        target, wanted = contact.target, contact.wanted
        shared, slots = run_folder(recorder.run, recorder.step), target.engine.capacity(contact.pages).slots
        return cls(
            gate=gate_of(target, recorder, tools, shared, spared=spared, slots=slots, sick=bool(contact.sick)),
            target=target,
            recorder=recorder,
            tools=tools,
            host_run_name=lease.run,
            lease=lease,
            observed=contact.observed,
            model=contact.model,
            edit_path=contact.edit.path,
            drain=drain(target.engine, contact.observed.process, target.service.drain, wanted.setting, wanted.to),
            sick=contact.sick,
            contact=contact,
        )

    def salt(self, phase: str) -> str:
        """Different for every phase, so that no cache of an earlier one answers; from the record, so repeatable."""
        return sha256(f"{self.host_run_name}/{self.target.name}/{phase}".encode())[:16]

    def save(self) -> Capture:
        """Save everything on the host and, encrypted, here; the host proves that it can be brought back."""
        files = self.contact.snapshot_files()
        extra = self._extra()
        records = self.tools.records
        with self.recorder.acting("capture", {"host": self.target.name, "files": files}) as outcome:
            args = {"files": files, "manager": self.target.manager_argument, "process": True, "extra": extra,
                    "nvml": self.bindings()}  # fmt: skip
            answer = Capture.read(self.target.ask("capture", {**self.host_run, **args}))
            outcome.update(
                host=self.target.name,
                restorable=answer.restorable,
                problems=answer.problems,
                digest=answer.digest,
                folder=self.host_run_name,
                state_dir=answer.state_dir(self.host_run_name),
                files={path: None if file is None else file.sha256 for path, file in answer.files.items()},
                copy=records.put_snapshot(self.host_run_name, self.target.name, self._copy(extra)),
                model=records.put_blob(self.model.model_dump_json().encode()),
            )
        self.captured = answer
        return answer

    def require_restorable(self) -> None:
        """Raises Refused unless the host proved that the saved state can be brought back."""
        if self.captured is None or not self.captured.restorable:
            raise Refused(f"{self.target.name}: the saved files cannot be restored", reason="not_restorable")

    def stage(self, data: bytes) -> str:
        """Lay bytes into the run's folder on the host, named by digest; nothing sees them there.

        Without an intent of its own: the folder is ours, was announced by `capture`, and is cleared by `tidy`.
        """
        digest = sha256(data)
        self.target.ask("stage", {**self.host_run, "sha256": digest, "content": base64.b64encode(data).decode()})
        return digest

    def change(self) -> None:
        """Write the new bytes and start the service anew, by playbook."""
        edit = self.contact.edit
        write = {"path": edit.path, "expect": sha256(edit.before), "staged": self.stage(edit.after)}
        self.about_to_start("write")
        body = {"host": self.target.name, **write, "play": "apply"}
        with self.tools.interrupts.shielded(), self.recorder.acting("write", body) as outcome:
            before, self.wrote, self.restored = self.wrote, True, False
            try:
                result = self.play("apply", {"changectl_writes": [write]}, action="restart", drop=self._dropped())
            except HostCallError as error:
                # Only the host can know, and what it does not say counts as written.
                # A dead-man that could not be armed ended the call before anything else was done.
                self.wrote = before or False not in (error.details.get("written"), error.details.get("armed"))
                self.refused = not self.wrote
                raise
            outcome.update(host=self.target.name, answers=[short(answer) for answer in result])

    def bindings(self) -> str | None:
        """NVML's bindings as they travel to a host; None: it has no GPU."""
        gpu = self.contact.host_answer.get("gpu")
        return self.tools.nvml_source() if isinstance(gpu, Mapping) and gpu.get("present") else None

    def _extra(self) -> dict[str, Any]:
        """What belongs to a snapshot beside the files; mounts and network cards are part of the host's answer."""
        return {
            "host": dict(self.contact.host_answer),
            "model": self.model.model_dump(mode="json"),
            "values": {
                values.name: [str(values.file), str(values.process), str(values.engine)]
                for values in self.contact.values
            },
        }

    def _copy(self, extra: Mapping[str, Any]) -> bytes:
        """The controller's own copy: `revert` needs it, and a person, when a host is gone."""
        pages = {name: {"status": page.status, "body": page.body} for name, page in self.contact.pages.items()}
        observed = self.observed.model_dump(mode="json")
        whole = {"format": 1, "observed": observed, "pages": pages, "sick": self.sick, **extra}
        return json.dumps(whole, sort_keys=True).encode()

    def restart_changed(self) -> None:
        """A fresh start on the new configuration, which is in place already."""
        self.restart(drop=self._dropped())

    def _dropped(self) -> list[str]:
        """Variables that a start command must not inherit from the old process: the changed one gets its new value."""
        wanted = self.contact.wanted
        names = [wanted.name] if wanted.setting is None else [wanted.setting.env]
        return [name for name in names if name]
