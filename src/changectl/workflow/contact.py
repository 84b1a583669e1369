"""Everything that is read from one instance before anything is done to it: the ground of pre-checks and of the edit."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from changectl import engines, kinds, managers, probes
from changectl.core.engine import Pages
from changectl.core.errors import ChangectlError, HostCallError, Refused
from changectl.core.observed import (
    Capture,
    GpuDriver,
    Hello,
    Help,
    HostFacts,
    Model,
    Nvml,
    Observed,
    Status,
    UnitVerify,
)
from changectl.core.placing import Placed
from changectl.core.precheck import NOT_EXPOSED, CheckResult, Seen, Situation, ThreeValues
from changectl.core.settings import Value
from changectl.core.step import Step
from changectl.core.wanted import Wanted
from changectl.workflow.locate import FileEdit, InFile, Locator, as_text, file_values
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

NOT_IN_FILES = Seen(known=False, why="not in the declared files")
HELP_TIMEOUT = 120.0  # seconds; some engines import for half a minute before they print their help


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

    @property
    def changes_nothing(self) -> bool:
        """Whether the file already says what is wanted."""
        return self.edit.before == self.edit.after

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
        managers.load(service.manager.name), tools.doors.open(placed.host),
    )  # fmt: skip


def make_contact(target: Target, step: Step, tools: Tools) -> Contact:
    """Read everything and compute the edit; nothing is changed.

    Raises:
        EditRefused, Refused: the value cannot be found or edited without doubt.
        HostCallError, ContactLost: the host did not answer what was asked.
    """
    wanted = kinds.load(step.change.kind).wanted(step.change.spec, target.engine)
    hello = target.hello()
    observed = target.inspect()
    tools.secrets.learn_observed(observed)
    status = target.status(from_start=True)
    pages = target.pages()
    locator = Locator(target.service.carriers, target.engine, target.manager, observed)
    return Contact(
        target=target,
        wanted=wanted,
        hello=hello,
        host_answer=target.host_answer(),
        observed=observed,
        status=status,
        pages=pages,
        model=_model(target, observed, tools),
        edit=locator.edit(wanted),
        values=three_values(target, wanted, locator, observed, pages, status.whole_log),
    )


def _model(target: Target, observed: Observed, tools: Tools) -> Model:
    kept = tools.memory.model_manifest(target.service.service, target.name)
    known = {}
    if kept is not None:
        files = Model.read(kept).files
        known = {file.path: [file.size, file.mtime_ns, file.sha256] for file in files if file.sha256}
    started = tools.clock.monotonic()

    def show(progress: Mapping[str, Any]) -> None:
        tools.reporter.waiting(
            f"reading the model files of {target.name} {progress.get('done', '')}",
            elapsed=tools.clock.monotonic() - started,
            expected=None,
        )

    return target.model(observed.process, known, show)


def three_values(
    target: Target, wanted: Wanted, locator: Locator, observed: Observed, pages: Pages, log: list[str]
) -> tuple[ThreeValues, ...]:
    """Every setting that is set anywhere, and the wanted one: in the file, in the process, in the engine."""
    process = observed.process
    argv, environ = (process.argv, process.environ) if process else (None, None)
    running = target.engine.running(argv or [], environ or {})
    reported = target.engine.effective(pages, log)
    in_files = file_values(locator, {*running, *([wanted.label] if wanted.setting else [])})
    rows = [
        ThreeValues(
            setting.name,
            _declared(in_files[setting.name].seen, setting.name == wanted.label),
            _in_process(running.get(setting.name), in_files[setting.name], argv is not None),
            Seen(reported[setting.name]) if setting.name in reported else NOT_EXPOSED,
            setting,
        )
        for setting in target.engine.settings
        if setting.name in in_files
    ]
    if wanted.setting is None:
        rows.append(_variable(wanted, locator, environ))
    return tuple(rows)


def _declared(in_file: Seen, is_wanted: bool) -> Seen:
    """A setting that stands in no declared file may well be set elsewhere (a start script): then the file is silent."""
    if is_wanted or not in_file.known or in_file.value is not None:
        return in_file
    return NOT_IN_FILES


def _in_process(value: Value, in_file: InFile, is_running: bool) -> Seen:
    if not is_running:
        return Seen(known=False, why="no running process")
    if value is None and in_file.read_by_engine:
        return Seen(known=False, why="the engine reads it from its file")
    return Seen(value)


def _variable(wanted: Wanted, locator: Locator, environ: Mapping[str, str] | None) -> ThreeValues:
    in_file = Seen(locator.find(wanted).reading.value)
    in_process = Seen(environ.get(wanted.name)) if environ is not None else Seen(known=False, why="no running process")
    return ThreeValues(wanted.label, in_file, in_process, NOT_EXPOSED)


def check(contact: Contact, tools: Tools, *, starts: int, capture: Capture | None, preview: bool) -> list[CheckResult]:
    """Run every pre-check; what cannot be read counts as not known, and the check says so."""
    situation = _situation(contact, tools, starts)
    return probes.run_all(replace(situation, capture=capture, preview=preview))


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


def _situation(contact: Contact, tools: Tools, starts: int) -> Situation:
    target, wanted, process = contact.target, contact.wanted, contact.observed.process
    before = dict(target.engine.effective(contact.pages, contact.status.whole_log))
    if process is not None:
        before |= target.engine.running(process.argv or [], process.environ or {})
    known = process is not None  # what pages and log tell without it is about some other process, or an earlier one
    after = {name: value for name, value in before.items() if name != wanted.label}
    if wanted.setting is not None and wanted.to is not None:
        after[wanted.label] = wanted.to
    kept = tools.memory.model_manifest(target.service.service, target.name)
    earlier = contact.status
    host = HostFacts.read(contact.host_answer)
    return Situation(
        service=target.service.service,
        endpoint=target.endpoint,
        expected_model=target.service.model.name,
        engine=target.engine,
        manager=target.manager,
        name=wanted.name,
        setting=wanted.setting or wanted.twin,
        to=wanted.to,
        edited_files=(contact.edit.path,),
        values=[row for row in contact.values if row.file is not NOT_IN_FILES],
        settings_before=before if known else None,
        settings_after=after if known else None,
        starts_needed=starts,
        bytes_needed=sum(facts.size or 0 for facts in contact.observed.files.values()) * 4 + (1 << 22),
        hello=contact.hello,
        host=host,
        observed=contact.observed,
        status=target.status(earlier.cursor),
        status_earlier=earlier,
        pages=contact.pages,
        log=contact.status.whole_log,
        nvml=_or_none(lambda: _nvml(target, host.gpu, tools)),
        help=_or_none(lambda: _help(contact)),
        unit_verify=_or_none(lambda: _unit_verify(contact)),
        drain=target.service.drain,
        state_path=target.state_path,
        model=contact.model,
        model_kept=None if kept is None else Model.read(kept),
        model_excluded=target.model_excluded,
    )


def _or_none(read: Any) -> Any:
    """What the host cannot tell stays not known; the check that needs it refuses."""
    try:
        return read()
    except HostCallError:
        return None


def _nvml(target: Target, gpu: GpuDriver | None, tools: Tools) -> Nvml | None:
    if gpu is not None and gpu.present is False:
        return Nvml(none="no NVIDIA driver on this host")
    source = tools.nvml_source()
    return None if source is None else Nvml.read(target.ask("nvml", {"source": source}))


def _help(contact: Contact) -> Help | None:
    process = contact.observed.process
    argv = contact.target.engine.help_argv(process.argv or []) if process else []
    if not argv or process is None:
        return None
    # With the service's own variables: an engine may not even load its libraries without them.
    args = {"argv": argv, "user": process.user, "environ": dict(process.environ or {}), "timeout": HELP_TIMEOUT}
    return Help.read(contact.target.ask("help", args, timeout=HELP_TIMEOUT + 10))


def _unit_verify(contact: Contact) -> UnitVerify | None:
    unit = contact.observed.manager.unit
    if unit is None:
        return None
    edit = contact.edit
    new = {"path": edit.path, "content": base64.b64encode(edit.after).decode(), "sha256": sha256(edit.after)}
    return UnitVerify.read(contact.target.ask("unit_verify", {"unit": unit, "files": [new]}))


def sha256(data: bytes) -> str:
    """The digest by which files are named."""
    return hashlib.sha256(data).hexdigest()


__all__ = ["ChangectlError", "Contact", "assert_from", "check", "make_contact", "open_target", "sha256", "three_values"]
