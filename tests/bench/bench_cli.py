"""How long an operator waits for `changectl --help`, beside `ansible --version`."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.table import Row

ROUNDS = 10
LIMIT = 0.35  # seconds
BIN = Path(sys.executable).parent


def seconds(*words: str) -> float:
    """Wall time of a command of this environment; raises CalledProcessError when it fails."""
    environment = {"PATH": f"{BIN}:{os.environ['PATH']}", "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
    begun = time.perf_counter()
    subprocess.run([str(BIN / words[0]), *words[1:]], env=environment, capture_output=True, check=True)
    return time.perf_counter() - begun


def medians(rounds: int) -> tuple[float, float]:
    """Ours and the rival's, one after the other, so that a busy moment meets both; the first round warms up."""
    pairs = [(seconds("changectl", "--help"), seconds("ansible", "--version")) for _ in range(rounds + 1)][1:]
    return statistics.median(ours for ours, _ in pairs), statistics.median(theirs for _, theirs in pairs)


def run(rounds: int = ROUNDS) -> list[Row]:
    """Two floors: an absolute one, and the rival."""
    ours, theirs = medians(rounds)
    note = f"median of {rounds} alternating rounds, after one to warm up"
    return [
        Row("cli", "changectl --help", "at most 0.35 s", ours, LIMIT, note=note),
        Row("cli", "changectl --help", "no slower than ansible --version", ours, theirs, theirs, note=note),
    ]
