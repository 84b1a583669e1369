"""Runs the cells of the lab on both hosts at the same time."""

from __future__ import annotations

import queue
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from tests.faults.cells import Cell
from tests.faults.lab_cell import LabBench, LabCell, events_of
from tests.faults.worlds import CODES, Result, WorldError
from tests.lab.harness import install, root
from tests.lab.harness.lab import Lab

HOSTS = ("h1", "h2")
TRIES = 3


@dataclass
class LabRuns:
    """Both hosts, each with its service."""

    benches: Sequence[LabBench]

    def dry_runs(self) -> dict[str, Sequence[str]]:
        """Plan -> the events of an undisturbed run of it. Raises WorldError when a plan does not end as it should."""
        free = self._free()

        def events(plan: str) -> Sequence[str]:
            bench = free.get()
            try:
                for _ in range(TRIES):
                    code, kinds, said = events_of(bench, plan)
                    if code == CODES[plan]:
                        return kinds
            finally:
                free.put(bench)
            raise WorldError(f"the plan {plan} ended with {code}, not {CODES[plan]}: {said[-3000:]}")

        with ThreadPoolExecutor(len(self.benches)) as pool:
            return dict(zip(CODES, pool.map(events, CODES), strict=True))

    def run_all(self, cells: Sequence[Cell]) -> Iterator[Result]:
        """Carry out cells, one on each host at a time; yields each as it ends, in the order given."""
        free = self._free()

        def run(cell: Cell) -> Result:
            bench = free.get()
            try:
                return _run(bench, cell)
            finally:
                free.put(bench)

        with ThreadPoolExecutor(len(self.benches)) as pool:
            yield from pool.map(run, cells)

    def _free(self) -> queue.Queue[LabBench]:
        free: queue.Queue[LabBench] = queue.Queue()
        for bench in self.benches:
            free.put(bench)
        return free


def _run(bench: LabBench, cell: Cell) -> Result:
    begun = time.monotonic()
    told: Mapping[str, object] = {}
    for attempt in range(TRIES):
        try:
            told = {**LabCell(bench, cell).carry_out(), "tries": attempt + 1}
        except Exception as error:  # noqa: BLE001 - a broken cell is a row of the table, and the others go on
            told = {"error": f"{type(error).__name__}: {error}"}
            break
        if told["struck"]:
            break
    return Result(cell, dict(told), time.monotonic() - begun)


@contextmanager
def lab_runs() -> Iterator[LabRuns]:
    """Both hosts of a lab of their own. Raises LabMissingError where this machine can have no lab."""
    install.ensure()
    root.root()
    root.engine()
    with Lab() as lab, runs_on(lab) as made:
        yield made


@contextmanager
def runs_on(lab: Lab) -> Iterator[LabRuns]:
    """Both hosts of a lab, booted."""
    folder = Path(mkdtemp(prefix="faults-lab-"))
    try:
        yield LabRuns([LabBench(host, folder / host.name) for host in lab.up(*HOSTS)])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
