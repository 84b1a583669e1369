"""Everything that is read from one instance before anything is done to it: the ground of pre-checks and of the edit."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from changectl import engines, kinds, managers
from changectl.core.declared.calibration import NOTHING
from changectl.core.declared.placing import Placed
from changectl.core.declared.step import Step
from changectl.core.declared.wanted import Wanted
from changectl.core.digest import sha256
from changectl.core.engine import Pages
from changectl.core.errors import Refused
from changectl.core.observed import FileFacts, Hello, Model, Observed, Status
from changectl.core.precheck import ThreeValues
from changectl.core.settings import Value
from changectl.workflow.locate import FileEdit, Locator, as_text
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools
from changectl.workflow.values import three_values


@dataclass(frozen=True)
class Ahead:
    """What the earlier steps of a plan would have made of an instance, where the plan is only looked at."""

    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # resolved path -> bytes
    settings: Mapping[str, Value] = field(default_factory=dict)  # engine's name -> value; None: absent

    def seen(self, observed: Observed) -> Observed:
        """The instance as it would be found then: the same, with other bytes in the files."""
        return observed.model_copy(
            update={"files": {path: self._file(path, facts) for path, facts in observed.files.items()}}
        )

    def _file(self, path: str, facts: FileFacts) -> FileFacts:
        data = self.files.get(facts.resolved or path)
        if data is None:
            return facts
        content = base64.b64encode(data).decode()
        return facts.model_copy(update={"content": content, "sha256": sha256(data), "size": len(data)})


@dataclass(frozen=True)
class Contact:
    """One instance as it is, and the edit that the step asks for."""

    target: Target
    wanted: Wanted
    hello: Hello
    host_answer: Mapping[str, Any] = field(repr=False)
    observed: Observed = field(repr=False)
    status: Status
    pages: Pages = field(repr=False)
    model: Model
    edit: FileEdit = field(repr=False)
    values: tuple[ThreeValues, ...]
    ahead: Ahead = field(default_factory=Ahead)
    sick: str = ""  # in an incident: what was wrong with the service as it was found
    measured_alone: bool = False  # in a calibration: it is started and measured as it is, and nothing is written

    @property
    def changes_nothing(self) -> bool:
        """Whether the file already says what is wanted."""
        return self.edit.before == self.edit.after

    @property
    def takes_part(self) -> bool:
        """Whether anything is to be done to it: a change, or a calibration."""
        return self.measured_alone or not self.changes_nothing

    @property
    def three(self) -> ThreeValues:
        """The changed value in the file, in the process and in the engine."""
        return next(values for values in self.values if values.name == self.wanted.label)

    @property
    def edited_paths(self) -> set[str]:
        """Every path by which the edited file was looked at: a link and what it leads to are one file."""
        resolved = {path: facts.resolved or path for path, facts in self.observed.files.items()}
        edited = resolved.get(self.edit.path, self.edit.path)
        return {self.edit.path, *(path for path, place in resolved.items() if place == edited)}

    @property
    def resolved_path(self) -> str:
        """Where the edited file lies, links followed."""
        facts = self.observed.files.get(self.edit.path)
        return (facts.resolved if facts else None) or self.edit.path

    @property
    def resolved_paths(self) -> set[str]:
        """Where its configuration files lie, links followed."""
        return {facts.resolved or path for path, facts in self.observed.files.items()} | {self.resolved_path}

    def snapshot_files(self) -> list[str]:
        """Every configuration file that belongs to the service."""
        return sorted({*self.target.files, *self.observed.files, self.edit.path})


def open_target(placed: Placed, tools: Tools) -> Target:
    """Open the door to an instance. Raises ContactLost or Refused."""
    service = placed.service
    bearer = service.auth.bearer.get_secret_value() if service.auth else None
    tools.secrets.learn_host(placed.host.variables, bearer)
    engine = engines.load(service.engine.spec)
    return Target(
        placed.name, placed.host, service, placed.endpoint, engine,
        managers.load(service.manager.name), tools.doors.open(placed.host), placed.number,
    )  # fmt: skip


def make_contact(target: Target, step: Step, tools: Tools, ahead: Ahead | None = None) -> Contact:
    """Read everything and compute the edit; nothing is changed.

    Args:
        target: the instance.
        step: what is asked for.
        tools: the ports.
        ahead: what earlier steps would have written: the edit is computed on top of that.

    Raises:
        EditRefused, Refused: the value cannot be found or edited without doubt.
        HostCallError, ContactLost: the host did not answer what was asked.
    """
    calibrates = step.change.kind == NOTHING.kind
    wanted = NOTHING if calibrates else kinds.load(step.change.kind).wanted(step.change.spec, target.engine)
    hello = target.hello()
    observed = target.inspect()
    tools.secrets.learn_observed(observed)
    status = _status(target, tools)
    pages = target.pages()
    locator = Locator(target.service.carriers, target.engine, target.manager, observed)
    ahead = ahead or Ahead()
    locate = replace(locator, observed=ahead.seen(observed))
    edit = locate.no_edit() if calibrates else locate.edit(wanted)
    return Contact(
        target=target,
        wanted=wanted,
        hello=hello,
        host_answer=target.host_answer(also=[edit.path]),
        observed=observed,
        status=status,
        pages=pages,
        model=_model(target, observed, tools),
        edit=edit,
        values=three_values(target, wanted, locator, observed, pages, status.whole_log),
        ahead=ahead,
        measured_alone=calibrates,
    )


def _status(target: Target, tools: Tools) -> Status:
    """How the service is, with what it said when it started, as far back as anybody knows."""
    status = target.status(from_start=True)
    if status.process is None:
        return status
    kept = tools.memory.start_log(target.service.service, target.name, status.process)
    return status.model_copy(update={"start_log": kept}) if kept else status


def _model(target: Target, observed: Observed, tools: Tools) -> Model:
    kept = tools.memory.model_manifest(target.service.service, target.name)
    return read_model(target, observed, None if kept is None else Model.read(kept), tools)


def read_model(target: Target, observed: Observed, known: Model | None, tools: Tools) -> Model:
    """The model's manifest as it is now; only files of another size or time than the known ones are read through."""
    digests = (
        {file.path: [file.size, file.mtime_ns, file.sha256] for file in known.files if file.sha256} if known else {}
    )
    started = tools.clock.monotonic()

    def show(progress: Mapping[str, Any]) -> None:
        done, total = (float(progress.get(key) or 0) / 1e9 for key in ("hashed_bytes", "total_bytes"))
        tools.reporter.waiting(
            f"reading the model files of {target.name} ({done:.1f} of {total:.1f} GB)",
            elapsed=tools.clock.monotonic() - started,
            expected=None,
        )

    return target.model(observed.process, digests, show)


def assert_from(contact: Contact) -> None:
    """The plan's `from` is an assertion. Raises Refused when the file says something else."""
    wanted, found = contact.wanted, contact.edit.place.reading.value
    if not wanted.is_asserted or _same(contact, wanted.asserted, found):
        return
    raise Refused(
        f"{contact.target.name}: {wanted.name} is {as_text(found)} in {contact.edit.path}, "
        f"the plan says from: {as_text(wanted.asserted)}",
        reason="from_differs",
    )


def _same(contact: Contact, one: Value, other: Value) -> bool:
    setting = contact.wanted.setting
    return one == other if setting is None else contact.target.engine.same(setting, one, other)
