"""The only place where ports meet implementations."""

from __future__ import annotations

import base64
import getpass
import importlib.util
import os
import secrets
import socket
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import changectl
from changectl.adapters.checks import TestinfraChecks
from changectl.adapters.clock import SystemClock
from changectl.adapters.doors import HostDoors
from changectl.adapters.heart import HostHeart
from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.loadgen import build_zip
from changectl.adapters.orphans import end_orphans
from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.adapters.project_files import find_project
from changectl.adapters.shipped import playbooks_folder
from changectl.adapters.vault import absolute
from changectl.cli._around import around_journal
from changectl.cli._options import HostOptions
from changectl.cli._places import demand_inventory
from changectl.cli._progress import ProgressReporter, ask_person
from changectl.core.declared.project import Project
from changectl.core.ports import HostAddress
from changectl.reports._commands import apart
from changectl.reports.printer import Printer
from changectl.store import open_store
from changectl.store.memory import RunMemory
from changectl.store.store import Store
from changectl.workflow.doctor_tools import Instruments
from changectl.workflow.interrupts import Interrupts
from changectl.workflow.secrets import Secrets
from changectl.workflow.tools import Tools

_RUN_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # nothing that is misread aloud


@dataclass(frozen=True)
class Workplace:
    """A project with its ports put together."""

    project: Project
    inventory: AnsibleInventory
    store: Store
    tools: Tools


@contextmanager
def workplace(hosts: HostOptions, printer: Printer, *, wait: float = 0.0) -> Iterator[Workplace]:
    """Find the project in the working directory and put everything together."""
    project = demand_inventory(find_project(Path.cwd(), hosts.inventory))
    source, playbooks = Path(project.inventory), playbooks_folder()
    vaults = tuple(map(absolute, hosts.vault_ids))
    password = getpass.getpass("BECOME password: ") if hosts.ask_become_pass else None
    with open_store(Path(project.database), Path(project.key_file)) as store:
        known = Secrets(store.redaction_salt(), store.guard)
        inventory = AnsibleInventory(source, playbooks, hosts.limit, vaults, learn=known.learn)
        if password:
            known.learn([password])
        reporter, interrupts = ProgressReporter(printer, known), Interrupts()
        tools = Tools(
            inventory=inventory,
            doors=HostDoors(playbooks, password, interrupts.check),
            heart=HostHeart(HostDoors(playbooks, password).open),
            playbooks=RunnerPlaybooks(source, playbooks, vaults, password),
            journal=around_journal(store.journal),
            records=store.records,
            memory=RunMemory(store.journal, store.records),
            checks=TestinfraChecks(source, playbooks, Path(project.root), interrupts.check, vaults, password),
            reporter=reporter,
            clock=SystemClock(),
            interrupts=interrupts,
            secrets=known,
            generator=build_zip,
            nvml_source=nvml_bindings,
            ask=partial(ask_person, check=interrupts.check),
            end_orphans=end_orphans,
            leave=leave,
            new_run=new_run,
            actor=actor(),
            version=changectl.__version__,
            wait_seconds=wait,
        )
        try:
            yield Workplace(project, inventory, store, tools)
        finally:
            reporter.close()


def all_hosts(hosts: HostOptions) -> tuple[Sequence[HostAddress], HostDoors]:
    """Every host of the inventory, and the way to them; for commands that look without opening the record to write."""
    project = find_project(Path.cwd(), hosts.inventory)
    playbooks = playbooks_folder()
    password = getpass.getpass("BECOME password: ") if hosts.ask_become_pass else None
    inventory = AnsibleInventory(Path(project.inventory), playbooks, hosts.limit, tuple(map(absolute, hosts.vault_ids)))
    return inventory.hosts("all"), HostDoors(playbooks, password)


@dataclass(frozen=True)
class Clinic:
    """What a doctor works with; no record is opened."""

    project: Project
    inventory: AnsibleInventory
    tools: Instruments
    reporter: ProgressReporter
    interrupts: Interrupts
    secrets: Secrets


def clinic(hosts: HostOptions, printer: Printer) -> Clinic:
    """Find the project in the working directory and put together what a doctor needs."""
    project = demand_inventory(find_project(Path.cwd(), hosts.inventory))
    source, playbooks = Path(project.inventory), playbooks_folder()
    vaults = tuple(map(absolute, hosts.vault_ids))
    password = getpass.getpass("BECOME password: ") if hosts.ask_become_pass else None
    known = Secrets(os.urandom(16), lambda _: None)  # nothing is stored, so no store has to watch for secrets
    if password:
        known.learn([password])
    inventory = AnsibleInventory(source, playbooks, hosts.limit, vaults, learn=known.learn)
    reporter, interrupts = ProgressReporter(printer, known), Interrupts()
    tools = Instruments(
        doors=HostDoors(playbooks, password),
        playbooks=RunnerPlaybooks(source, playbooks, vaults, password),
        clock=SystemClock(),
        new_name=new_name,
        new_nonce=lambda: secrets.token_hex(16),
        stop=interrupts.check,
        tell=reporter.note,
        clean=lambda text: known.redactor.known(text),
        actor=actor(),
        password=password is not None,
    )
    return Clinic(project, inventory, tools, reporter, interrupts, known)


def leave(text: str, exit_code: int) -> None:
    """End this process as if it were killed, after a last word; every event is on disk already."""
    os.write(2, f"\n{apart(text)}\n".encode())
    os._exit(exit_code)


def new_run(service: str) -> str:
    """A run id that reads well, sorts by time, and that no other controller makes."""
    moment = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    return f"{moment}-{service}-{_letters()}"


def new_name() -> str:
    """The same for what is no run of a service."""
    return f"{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}-{_letters()}"


def _letters() -> str:
    return "".join(secrets.choice(_RUN_LETTERS) for _ in range(4))


def actor() -> str:
    """Who runs this, and from where; behind sudo the person, not root."""
    user = os.environ.get("SUDO_USER") or getpass.getuser()
    return f"{user}@{socket.gethostname()}"


def nvml_bindings() -> str | None:
    """The source of the NVML bindings, packed for the host call `nvml`; None: they are not installed."""
    spec = importlib.util.find_spec("pynvml")
    if spec is None or spec.origin is None:
        return None
    return base64.b64encode(zlib.compress(Path(spec.origin).read_bytes())).decode()
