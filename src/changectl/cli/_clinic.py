"""A doctor's ports, put together; several hosts are looked at at the same time. No record is opened."""

from __future__ import annotations

import getpass
import os
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from changectl.adapters.clock import SystemClock
from changectl.adapters.doors import HostDoors
from changectl.adapters.inventory import AnsibleInventory
from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.adapters.project_files import find_project
from changectl.adapters.shipped import playbooks_folder
from changectl.adapters.vault import absolute
from changectl.cli._options import HostOptions
from changectl.cli._patients import patients
from changectl.cli._places import demand_inventory
from changectl.cli._progress import ProgressReporter
from changectl.cli.wiring import actor
from changectl.core.doctor import Examination
from changectl.reports.printer import Printer
from changectl.workflow.doctor import Instruments, Patient, examine
from changectl.workflow.interrupts import Interrupted, Interrupts
from changectl.workflow.secrets import Secrets

AT_ONCE = 8  # hosts
EXPECTED = 12.0  # seconds for one host
SLICE = 0.2  # seconds between two words of progress


@dataclass
class _Stop:
    """Asks everybody at work to end, not only whoever looks first."""

    interrupts: Interrupts
    name: str | None = None

    def __call__(self) -> None:
        try:
            self.interrupts.check()
        except Interrupted as interrupted:
            self.name = interrupted.name
        if self.name is not None:
            raise Interrupted(self.name)


def look_at_all(words: Sequence[str], options: HostOptions, printer: Printer) -> list[Examination]:
    """Look at the hosts that are named.

    Raises:
        InputError: see `patients`; a connection that is not supported.
        Interrupted: somebody asked for the end; what was begun on hosts is taken away again.
    """
    project = demand_inventory(find_project(Path.cwd(), options.inventory))
    source, playbooks = Path(project.inventory), playbooks_folder()
    vaults = tuple(map(absolute, options.vault_ids))
    password = getpass.getpass("BECOME password: ") if options.ask_become_pass else None
    known = Secrets(os.urandom(16), _no_sink)
    inventory = AnsibleInventory(source, playbooks, options.limit, vaults, learn=known.learn)
    if password:
        known.learn([password])
    reporter, interrupts = ProgressReporter(printer, known), Interrupts()
    groups = patients(words, project, inventory, reporter.note)
    for group in groups:
        known.learn_host(group[0].host.variables, None)
        known.spare([group[0].host.name])
    tools = Instruments(
        doors=HostDoors(playbooks, password),
        playbooks=RunnerPlaybooks(source, playbooks, vaults, password),
        clock=SystemClock(),
        new_name=_new_name,
        new_nonce=lambda: secrets.token_hex(16),
        stop=_Stop(interrupts),
        tell=reporter.note,
        clean=lambda text: known.redactor.known(text),
        actor=actor(),
        password=password is not None,
    )
    with interrupts.listening():
        return _together(groups, tools, reporter)


def _no_sink(_: object) -> None:
    """Nothing is stored, so no store has to watch for secrets."""


def _new_name() -> str:
    return f"{datetime.now(UTC).strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def _together(groups: Sequence[Sequence[Patient]], tools: Instruments, reporter: ProgressReporter) -> list[Examination]:
    """All hosts, some at a time; the state folders of one host after each other, since it has one lease."""

    def look(group: Sequence[Patient]) -> list[Examination]:
        return [examine(patient, tools) for patient in group]

    begun = time.monotonic()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            futures = [pool.submit(look, group) for group in groups]
            _wait(futures, [group[0].host.name for group in groups], lambda: time.monotonic() - begun, reporter)
    finally:
        reporter.close()
    return [one for future in futures for one in future.result()]


def _wait(
    futures: Sequence[Future[list[Examination]]], names: Sequence[str], elapsed: Callable[[], float],
    reporter: ProgressReporter,
) -> None:  # fmt: skip
    while wait(futures, SLICE).not_done:
        left = [name for name, future in zip(names, futures, strict=True) if not future.done()]
        rounds = -(-len(names) // AT_ONCE)
        reporter.waiting(f"looking at {', '.join(left[:3])}{' ...' if len(left) > 3 else ''}", elapsed=elapsed(),
                         expected=EXPECTED * rounds)  # fmt: skip
