"""Several hosts are looked at at the same time; whoever asks for the end is heard by all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from changectl.cli._options import HostOptions
from changectl.cli._patients import patients
from changectl.cli._progress import ProgressReporter
from changectl.cli.wiring import clinic
from changectl.core.declared.project import Project
from changectl.core.doctor.examination import Examination
from changectl.core.errors import ChangectlError
from changectl.core.history.events import SUMMARY_KINDS
from changectl.core.history.runs import endings, runs
from changectl.reports.printer import Printer
from changectl.store import open_store
from changectl.workflow.doctor import examine
from changectl.workflow.doctor_tools import Instruments, Patient
from changectl.workflow.interrupts import Interrupted, Interrupts

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
    place = clinic(options, printer)
    groups = patients(words, place.project, place.inventory, place.reporter.note)
    for group in groups:
        place.secrets.learn_host(group[0].host.variables, None)
        place.secrets.spare([group[0].host.name])
    tools = replace(place.tools, stop=_Stop(place.interrupts), ended=_ended(place.project))
    with place.interrupts.listening():
        return _together(groups, tools, place.reporter)


def _ended(project: Project) -> Mapping[str, str]:
    """How the runs of the project ended; nothing where there is no record, or one that cannot be read."""
    if not Path(project.database).exists():
        return {}
    try:
        with open_store(Path(project.database), Path(project.key_file)) as store:
            return endings(runs(store.journal.select(kinds=SUMMARY_KINDS)))
    except ChangectlError:
        return {}


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
    futures: Sequence[Future[list[Examination]]],
    names: Sequence[str],
    elapsed: Callable[[], float],
    reporter: ProgressReporter,
) -> None:
    expected = EXPECTED * -(-len(names) // AT_ONCE)
    while wait(futures, SLICE).not_done:
        left = [name for name, future in zip(names, futures, strict=True) if not future.done()]
        what = f"looking at {', '.join(left[:3])}{' ...' if len(left) > 3 else ''}"
        reporter.waiting(what, elapsed=elapsed(), expected=expected)
