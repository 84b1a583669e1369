"""What a dead controller left running on this machine is known by its mark, and only that is ended."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from changectl.adapters.orphans import MARK, end_orphans


def sleeper(mark: str) -> subprocess.Popen[bytes]:
    code = "import subprocess, sys; print('up', flush=True); subprocess.run(['sleep', '60'])"
    process = subprocess.Popen(
        [sys.executable, "-c", code], env={**os.environ, MARK: mark}, stdout=subprocess.PIPE, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def sleepers() -> Iterator[list[subprocess.Popen[bytes]]]:
    made = [sleeper(mark) for mark in ("R7.1", "R7", "R70.1", "R8.1")]
    yield made
    for process in made:
        os.killpg(process.pid, 9)
        process.wait()


def test_only_the_runs_own_processes_and_what_they_started_are_ended(sleepers: list[subprocess.Popen[bytes]]) -> None:
    assert end_orphans("R7") >= 3  # two, and a child at least
    ours, run, longer, other = sleepers

    assert ours.wait(5) == run.wait(5) == -9
    assert longer.poll() is other.poll() is None


def test_nothing_is_ended_where_nothing_is_left() -> None:
    assert end_orphans("R-nobody") == 0
