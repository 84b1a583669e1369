"""From a plan's path to an order: everything read, validated and placed on hosts, none of which was touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from changectl.adapters.files import load_calibration, load_plan, load_workload
from changectl.adapters.project_files import find_project, show
from changectl.cli._places import demand_file, demand_inventory
from changectl.core.declared.placing import Placed, check_names, place, place_caller
from changectl.core.declared.service import Service
from changectl.core.digest import plan_digest, sha256
from changectl.core.trial.calibration import Calibration
from changectl.workflow.apply import Order
from changectl.workflow.selftest import SelfTestOrder

if TYPE_CHECKING:
    from changectl.cli.wiring import Workplace


def instances_of(service: Service, work: Workplace) -> list[Placed]:
    """The service's instances on their hosts; what the service leaves out the project file may say.

    Raises:
        InputError: a host, group or template variable that does not exist.
    """
    check_names(service, work.inventory.known())
    placed = place(service, work.inventory.hosts)
    project = {"state_dir": work.project.state_dir, "lease": work.project.lease}
    defaults = {key: value for key, value in project.items() if value is not None and getattr(service, key) is None}
    found = [replace(one, service=one.service.model_copy(update=defaults)) for one in placed]
    work.tools.secrets.spare([service.service, *(name for one in found for name in _names(one))])
    return found


def _names(one: Placed) -> list[str]:
    """What the record calls an instance and its files by."""
    carriers = one.service.carriers
    return [one.name, one.host.name, *(name for each in carriers for name in (each.file, each.unit) if name)]


def check_files(plan_path: Path, inventory: Path | None, *, incident: bool = False) -> None:
    """Read a plan and all that it names, before anything is made or started. Raises InputError with every problem."""
    demand_file(plan_path)
    load_plan(plan_path, demand_inventory(find_project(Path.cwd(), inventory)), incident=incident)


def order_of(plan_path: Path, work: Workplace, *, incident: bool = False) -> Order:
    """Read a plan. Raises InputError with every problem of it and of what it names."""
    loaded = load_plan(plan_path, work.project, incident=incident)
    placed = instances_of(loaded.service, work)
    caller = place_caller(loaded.service, work.inventory.host)
    work.tools.secrets.spare([caller.name] if caller else [])
    checks = {
        number: [str(loaded.checks[name]) for name in step.checks] for number, step in enumerate(loaded.plan.steps, 1)
    }
    hosts = [one.host.name for one in placed]
    return Order(
        plan=loaded.plan,
        plan_file=show(plan_path),
        plan_text=loaded.content.decode("utf-8", "replace"),
        plan_digest=loaded.digest(hosts, work.tools.version),
        covers=loaded.covers(hosts, work.tools.version),
        service=loaded.service,
        placed=placed,
        workload=loaded.workload.entries,
        checks=checks,
        caller=caller,
    )


def selftest_of(name: str, seconds: float | None, work: Workplace) -> SelfTestOrder:
    """What proving the measuring of a service is made of. Raises InputError with every problem of its files."""
    read = load_workload(name, work.project)
    placed = instances_of(read.loaded.service, work)
    caller = place_caller(read.loaded.service, work.inventory.host)
    work.tools.secrets.spare([caller.name] if caller else [])
    return SelfTestOrder(read.loaded.service, placed, read.workload.entries, read.protocol, caller, seconds)


def calibration_of(name: str, calibration: Calibration, outage: float | None, reason: str, work: Workplace) -> Order:
    """What a calibration of a service is made of. Raises InputError with every problem of its files."""
    read = load_calibration(name, calibration, outage, reason, work.project)
    placed = instances_of(read.loaded.service, work)
    caller = place_caller(read.loaded.service, work.inventory.host)
    work.tools.secrets.spare([caller.name] if caller else [])
    hosts = [one.host.name for one in placed]
    digest = plan_digest(
        plan=sha256(repr(calibration).encode()), service=read.loaded.digest, files={read.written: read.workload.digest},
        hosts=hosts, tool_version=work.tools.version,
    )  # fmt: skip
    return Order(
        plan=read.plan,
        plan_file=show(read.loaded.file),
        plan_text="",
        plan_digest=digest,
        covers=read.covers,
        service=read.loaded.service,
        placed=placed,
        workload=read.workload.entries,
        checks={},
        caller=caller,
        calibration=calibration,
    )
