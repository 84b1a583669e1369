"""`python -m tests.bench [NAME ...]`: run benches and print one table; exit status 1 when a floor is missed.

Every `bench_NAME.py` beside this file is one bench: its `run()` returns rows. A bench that cannot run here (the lab
needs root on Debian) is named, and counts as missed unless CHANGECTL_BENCH_SKIP=1 says that this machine may leave it
out.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from pathlib import Path

from tests.bench.table import Row, machine, table

HERE = Path(__file__).resolve().parent
BY_NAME_ALONE = ("verdict",)  # takes two hours


def names() -> list[str]:
    """The benches, by file name."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def main() -> int:
    """Run the benches that are named (by default all but those that are run by name alone)."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Speed and size against floors.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(names())}")
    wanted = parser.parse_args().names or [name for name in names() if name not in BY_NAME_ALONE]
    unknown = sorted(set(wanted) - set(names()))
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}; there are: {', '.join(names())}")
    rows: list[Row] = []
    failed: list[str] = []
    for name in wanted:
        _one(name, rows, failed)
    sys.stdout.write(f"\n{table(rows, failed)}\n({machine()} at the end)\n")
    left_out = failed and os.environ.get("CHANGECTL_BENCH_SKIP") != "1"
    return 1 if left_out or not all(row.held for row in rows) or not rows else 0


def _one(name: str, rows: list[Row], failed: list[str]) -> None:
    sys.stderr.write(f"{name} ({machine()}) ...\n")
    begun = time.monotonic()
    try:
        rows += importlib.import_module(f"tests.bench.bench_{name}").run()
    except Exception as error:  # noqa: BLE001 - the other benches still run; this one counts as missed
        failed.append(f"{name}: no figure: {type(error).__name__}: {error}")
    sys.stderr.write(f"{name}: {time.monotonic() - begun:.0f} s\n")


if __name__ == "__main__":
    sys.exit(main())
