"""The operator's files: reads plans, services and workloads, and digests everything it read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from changectl import engines, kinds
from changectl.adapters.project_files import read_bytes, service_file, service_names, show
from changectl.core.declared import calibration as calibrations
from changectl.core.declared import effort as efforts
from changectl.core.declared import levels as load_levels
from changectl.core.declared import measured_path
from changectl.core.declared import plan as plans
from changectl.core.declared import service as services
from changectl.core.declared.fields import is_name
from changectl.core.declared.grammar import in_file_order, nearest
from changectl.core.declared.lacking import lacking_metrics
from changectl.core.declared.plan import Plan
from changectl.core.declared.project import Project
from changectl.core.declared.service import Service
from changectl.core.declared.source import Source, read_yaml
from changectl.core.digest import plan_digest, sha256
from changectl.core.errors import InputError, Problem
from changectl.core.trial.calibration import Calibration
from changectl.core.workload import requests as workloads
from changectl.core.workload.requests import Workload

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedService:
    """A service file as read."""

    service: Service
    file: Path
    digest: str


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan with everything it names."""

    plan: Plan
    file: Path
    plan_digest: str  # of the plan file's own bytes
    content: bytes = field(repr=False)
    service: Service  # with its templates as written
    service_digest: str
    workload: Workload
    checks: Mapping[str, Path]  # testinfra files, by the path as written
    files: Mapping[str, str]  # digest of every file that plan and service name, by the path as written

    def digest(self, hosts: Iterable[str], tool_version: str) -> str:
        """The digest that stands for the plan, all it names, its hosts and the tool."""
        return plan_digest(
            plan=self.plan_digest, service=self.service_digest, files=self.files, hosts=hosts, tool_version=tool_version
        )

    def covers(self, hosts: Iterable[str], tool_version: str) -> dict[str, str]:
        """What that digest covers, part by part, so that a difference can be named."""
        files = {f"file {name}": digest for name, digest in self.files.items()}
        named = {"plan": self.plan_digest, "service": self.service_digest, **files}
        return {**named, "hosts": ", ".join(sorted(set(hosts))), "changectl": tool_version}


def load_service(name: str, project: Project) -> LoadedService:
    """Read `services/NAME.yml` of a project.

    Raises:
        InputError: no such service (the hint names the nearest), or every problem of its file.
    """
    file = service_file(name, project)
    if file is None:
        raise InputError(Problem(_no_service(name, project), hint=nearest(name, service_names(project))))
    content = read_bytes(file)
    service = services.load(content, show(file), engines=engines.names())
    if service.service != name:
        message = f"the file is called `{file.name}`, the service `{service.service}`"
        raise InputError(service.source.problem(("service",), message, f"write `service: {name}`, or rename the file"))
    _check_slo(service)
    return LoadedService(service, file, sha256(content))


def _check_slo(service: Service) -> None:
    """Refuse limits on metrics that the service cannot give: they could never hold, or never be seen to."""
    lacking = _lacking(service)
    problems = []
    for guard in service.slo:
        why, _, hint = lacking.get(guard.ref.metric.name, "").partition("; ")
        if why:
            message = f"{guard.ref.metric.name} does not exist for this service: {why}"
            problems.append(service.source.problem(("slo", str(guard.ref)), message, hint))
    if problems:
        raise InputError(problems)


def load_plan(path: Path, project: Project, *, incident: bool = False) -> LoadedPlan:
    """Read a plan and every file it names; no host is touched.

    Args:
        path: the plan.
        project: where the files are that it names.
        incident: nothing will be measured, so what a measurement would need is not asked for.

    Raises:
        InputError: with the problems of all these files together.
    """
    content = read_bytes(path)
    source = read_yaml(content, show(path))
    _refuse_service(source)
    problems: list[Problem] = []
    loaded = _collect(problems, lambda: _service_of(source, project))
    levels = tuple(loaded.service.conditions.levels) if loaded else None
    lacking = _lacking(loaded.service) if loaded else {}
    plan = _collect(problems, lambda: plans.from_source(source, kinds=kinds.specs(), levels=levels, lacking=lacking))
    named = _collect(problems, lambda: _workload(plan, source, loaded, project))
    checks = _collect(problems, lambda: _checks(plan, source, project))
    _collect(problems, lambda: _check_names_of_settings(plan, source, loaded))
    if plan is not None and loaded is not None:
        if plan.effort.observed_for is None:  # nothing is sent, so no level has to suffice
            problems += load_levels.check(plan, source, loaded.service)
            problems += measured_path.check(plan, source, loaded.service)
        problems += [] if incident else efforts.check(plan.effort, plan.outage, source, loaded.service)
    if problems or plan is None or loaded is None or named is None or checks is None:
        raise InputError(in_file_order(problems))
    written, workload = named
    files = {written: workload.digest, **{name: sha256(read_bytes(file)) for name, file in checks.items()}}
    return LoadedPlan(plan, path, sha256(content), content, loaded.service, loaded.digest, workload, checks, files)


@dataclass(frozen=True, slots=True)
class LoadedCalibration:
    """What a calibration measures, read as for a plan."""

    plan: Plan
    loaded: LoadedService
    written: str  # the workload's path
    workload: Workload

    @property
    def covers(self) -> dict[str, str]:
        """The digests of what was read."""
        return {"service": self.loaded.digest, f"file {self.written}": self.workload.digest}


def load_calibration(
    name: str, calibration: Calibration, outage: float | None, reason: str, project: Project
) -> LoadedCalibration:
    """Read a service and its workload; no host is touched.

    Raises:
        InputError: with every problem of them, or what of the calibration the service does not allow.
    """
    loaded = load_service(name, project)
    plan = calibrations.calibration_plan(name, calibration, outage, reason)
    if problems := list(calibrations.check(plan, loaded.service)):
        raise InputError(problems)
    named = _workload(plan, loaded.service.source, loaded, project)
    if named is None:
        raise ValueError("a service that was read names its workload")
    return LoadedCalibration(plan, loaded, *named)


def _collect(problems: list[Problem], read: Callable[[], T]) -> T | None:
    try:
        return read()
    except InputError as error:
        problems += error.problems
        return None


def _refuse_service(source: Source) -> None:
    """Say of a service file that it is one, instead of every key that a plan does not have."""
    data = source.data
    if isinstance(data, dict) and {"engine", "instances"} <= data.keys() and not {"reason", "steps"} & data.keys():
        hint = "name a plan of that service; its service file is checked with it"
        raise InputError(Problem("this is a service file, and not a plan", source.file, hint=hint))


def _service_of(source: Source, project: Project) -> LoadedService | None:
    """The service that a plan names; None where the plan does not name one readably (its grammar says so)."""
    name = source.data.get("service") if isinstance(source.data, dict) else None
    if not isinstance(name, str) or not is_name(name):
        return None
    if service_file(name, project) is None:
        hint = nearest(name, service_names(project))
        raise InputError(source.problem(("service",), _no_service(name, project), hint))
    return load_service(name, project)


def _no_service(name: str, project: Project) -> str:
    return f"there is no service `{name}` in {show(Path(project.services))}"


def _lacking(service: Service) -> dict[str, str]:
    return lacking_metrics(service.engine.name, engines.load(service.engine.spec).protocols)


def _check_names_of_settings(plan: Plan | None, source: Source, loaded: LoadedService | None) -> None:
    """Refuse what the service's engine does not know by that name, or as that value, before any host is asked."""
    if plan is None or loaded is None:
        return
    engine = engines.load(loaded.service.engine.spec)
    declare = f"; or declare it under `engine/generic/settings` in {loaded.service.source.file}"
    problems: list[Problem] = []
    for index, step in enumerate(plan.steps):
        path = ("steps", index, "change", step.change.kind)
        try:
            wanted = kinds.load(step.change.kind).wanted(step.change.spec, engine)
        except InputError as error:
            more = declare if loaded.service.engine.name == "generic" else ""
            problems += [source.problem((*path, "name"), one.message, one.hint + more) for one in error.problems]
            continue
        for key, value in (("from", wanted.asserted), ("to", wanted.to)):
            why = engine.unfit(wanted.setting, value) if wanted.setting is not None and value is not None else ""
            if why:
                message, _, hint = why.rpartition("; ")
                problems.append(source.problem((*path, key), message, hint))
    if problems:
        raise InputError(problems)


def _workload(
    plan: Plan | None, source: Source, loaded: LoadedService | None, project: Project
) -> tuple[str, Workload] | None:
    """The workload in force, with its path as written: the plan's own, or the service's."""
    if plan is not None and plan.conditions.workload is not None:
        written, named_in = plan.conditions.workload, source
    elif loaded is not None:
        written, named_in = loaded.service.conditions.workload, loaded.service.source
    else:
        return None
    file = Path(project.root) / written
    if not file.is_file():
        message = f"there is no workload file {show(file)}"
        hint = f"paths are relative to the project's folder, {show(Path(project.root))}"
        raise InputError(named_in.problem(("conditions", "workload"), message, hint))
    return written, workloads.load(read_bytes(file), show(file), _protocol(loaded))


def _protocol(loaded: LoadedService | None) -> str | None:
    """The protocol by which the service's workload is sent; None: not known."""
    protocols = engines.load(loaded.service.engine.spec).protocols if loaded else ()
    return next(iter(protocols), None)


def _checks(plan: Plan | None, source: Source, project: Project) -> dict[str, Path]:
    """The testinfra files of all steps, by the path as written."""
    found: dict[str, Path] = {}
    problems: list[Problem] = []
    for index, step in enumerate(plan.steps if plan else ()):
        for number, written in enumerate(step.checks):
            found[written] = Path(project.root) / written
            if not found[written].is_file():
                message = f"there is no file {show(found[written])}"
                hint = f"paths are relative to the project's folder, {show(Path(project.root))}"
                problems.append(source.problem(("steps", index, "checks", number), message, hint))
    if problems:
        raise InputError(problems)
    return found


@dataclass(frozen=True, slots=True)
class LoadedWorkload:
    """A service with what it is measured with."""

    loaded: LoadedService
    workload: Workload
    protocol: str


def load_workload(name: str, project: Project) -> LoadedWorkload:
    """Read a service and its workload; no host is touched.

    Raises:
        InputError: with every problem of both, or there is no protocol to measure its engine by.
    """
    loaded = load_service(name, project)
    named, protocol = _workload(None, loaded.service.source, loaded, project), _protocol(loaded)
    if named is None or protocol is None:
        message = f"nothing is known by which {loaded.service.engine.name} could be measured"
        raise InputError(loaded.service.source.problem(("engine",), message, "say how it answers (`answer`)"))
    return LoadedWorkload(loaded, named[1], protocol)
