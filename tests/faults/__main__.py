"""`python -m tests.faults`: the whole matrix, its table on the terminal and in a file; 0 when every cell is sound."""

from __future__ import annotations

import argparse
import fnmatch
import queue
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from tests.faults import inside
from tests.faults.cells import Cell, lab_cells, local_cells
from tests.faults.lab_runs import lab_runs
from tests.faults.table import table
from tests.faults.worlds import Result, worlds
from tests.lab.harness.install import LabMissingError

OUT = Path("build/faults.md")
NOT_HERE = 2  # exit code: this machine cannot do it


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; see `--help`."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cells whose name matches, as local-kept-kill-*")
    parser.add_argument("--place", choices=["local", "lab", "both"], default="both")
    parser.add_argument("--together", type=int, default=2, help="local cells at a time")
    parser.add_argument("--list", action="store_true", help="only say the names of the cells")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where the table goes (default: {OUT})")
    options = parser.parse_args(arguments)
    results: list[Result] = []
    begun = time.monotonic()
    for result in _together(_places(options)):
        results.append(result)
        sys.stdout.write(f"{len(results):4} {result.seconds:6.1f} s  {result.word:9} {result.cell.name}\n")
        sys.stdout.flush()
    if options.list:
        return 0
    text = table(results) + f"\n{(time.monotonic() - begun) / 60:.0f} minutes\n"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    sys.stdout.write(text)
    return 0 if results and all(result.sound for result in results) else 1


def _places(options: argparse.Namespace) -> list[Iterator[Result]]:
    found = []
    if options.place != "lab":
        reason = inside.possible()
        if reason is not None:
            sys.stderr.write(f"Local cells need namespaces of their own: {reason}\n")
            raise SystemExit(NOT_HERE)
        found.append(_local(options))
    if options.place != "local":
        found.append(_lab(options))
    return found


def _together(places: Sequence[Iterator[Result]]) -> Iterator[Result]:
    """Both places at the same time: on hosts of the lab most of it is waiting. Each result as it comes."""
    results: queue.Queue[Result] = queue.Queue()

    def run(place: Iterator[Result]) -> None:
        for result in place:
            results.put(result)

    with ThreadPoolExecutor(max(1, len(places))) as pool:
        running = [pool.submit(run, place) for place in places]
        while not all(one.done() for one in running) or not results.empty():
            with suppress(queue.Empty):
                yield results.get(timeout=0.5)
    for one in running:
        one.result()


def _local(options: argparse.Namespace) -> Iterator[Result]:
    with worlds() as made:
        cells = chosen(list(local_cells(made.dry_runs())), options)
        yield from made.run_all(cells, options.together)


def _lab(options: argparse.Namespace) -> Iterator[Result]:
    try:
        with lab_runs() as made:
            cells = chosen(list(lab_cells(made.dry_runs())), options)
            yield from made.run_all(cells)
    except LabMissingError as problem:
        sys.stderr.write(f"No cells on hosts of the lab: {problem}\n")
        raise SystemExit(NOT_HERE) from problem


def chosen(cells: Sequence[Cell], options: argparse.Namespace) -> list[Cell]:
    """The cells that were asked for; with --list they are only named."""
    found = [cell for cell in cells if fnmatch.fnmatch(cell.name, options.only)]
    if options.list:
        sys.stdout.writelines(f"{cell.name}  ({cell.point.state})\n" for cell in found)
        return []
    return found


if __name__ == "__main__":
    raise SystemExit(main())
