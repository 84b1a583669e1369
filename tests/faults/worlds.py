"""Runs cells and dry runs, each in its own world, several at a time."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.faults import inside
from tests.faults.bench import REPOSITORY
from tests.faults.cells import Cell

CELL_TIMEOUT = 400.0  # seconds; a cell that needs so much is broken
#: Plan -> the exit code of an undisturbed run of it.
CODES = {"kept": 0, "reverted": 4, "dying": 4}


class WorldError(Exception):
    """A cell could not be carried out; that says nothing about the product."""


@dataclass(frozen=True)
class Result:
    """What came of a cell."""

    cell: Cell
    told: dict[str, Any]
    seconds: float

    @property
    def word(self) -> str:
        """The last judgement; `no trace` when the fault did not happen, `broken` when the cell itself failed."""
        if "error" in self.told:
            return "broken"
        return str(self.told["second"][0]) if self.told["struck"] else "no trace"

    @property
    def sound(self) -> bool:
        """Whether both judgements found the saved configuration or a judged change."""
        return self.word in ("restored", "kept") and self.told["first"][0] in ("restored", "kept")


@dataclass
class Worlds:
    """A folder for all cells of one test run."""

    folder: Path
    tries: int = 3  # a busy machine may make another verdict than the plan's, and then the point is never reached

    def dry_runs(self) -> dict[str, list[str]]:
        """Plan -> the events of an undisturbed run. Raises WorldError when a plan does not end as it should."""
        with ThreadPoolExecutor(2) as pool:
            return dict(zip(CODES, pool.map(self._events, CODES), strict=True))

    def _events(self, plan: str) -> list[str]:
        code = CODES[plan]
        for _ in range(self.tries):
            told = self._in_world(f"dry-{plan}", {"plan": plan, "fault": None})
            if told["exit"] == code:
                return list(told["kinds"])
        raise WorldError(f"the plan {plan} ended with {told['exit']}, not {code}: {told['out']}{told['err']}")

    def run(self, cell: Cell) -> Result:
        """Carry out one cell."""
        begun = time.monotonic()
        point = {key: value for key, value in asdict(cell.point).items() if key != "state"}
        try:
            told = self._in_world(cell.name, {"plan": cell.plan, "fault": cell.fault, "point": point})
        except WorldError as error:
            told = {"error": str(error)}
        return Result(cell, told, time.monotonic() - begun)

    def pair(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """Two instances on one host, whose controller is killed at a point."""
        name = f"pair-{point['when']}-{point['kind']}-{point['number']}"
        return self._in_world(name, {"plan": "kept", "fault": "pair", "point": dict(point)})

    def run_all(self, cells: Sequence[Cell], together: int = 2) -> Iterator[Result]:
        """Carry out cells, so many at a time; yields each as it ends, in the order given."""
        with ThreadPoolExecutor(together) as pool:
            yield from pool.map(self.run, cells)

    def _in_world(self, name: str, order: dict[str, Any]) -> dict[str, Any]:
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        place, result = folder / "order.json", folder / "result.json"
        place.write_text(json.dumps({**order, "folder": str(folder), "tries": self.tries}))
        with (folder / "log").open("wb") as log:
            done = subprocess.run(
                inside.command(place, result), cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                timeout=CELL_TIMEOUT, check=False,
            )  # fmt: skip
        if done.returncode != 0 or not result.exists():
            raise WorldError(f"{name}: {(folder / 'log').read_text(errors='replace')[-3000:]}")
        told: dict[str, Any] = json.loads(result.read_text())
        return told


@contextmanager
def worlds(*, tries: int = 3) -> Iterator[Worlds]:
    """A folder for the cells of one test run; it goes at the end."""
    folder, made = Path(mkdtemp(prefix="faults-")), not inside.HOST_FOLDER.exists()
    try:
        yield Worlds(folder, tries)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if made and inside.HOST_FOLDER.is_dir() and not any(inside.HOST_FOLDER.iterdir()):
            inside.HOST_FOLDER.rmdir()
