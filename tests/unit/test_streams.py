"""How `make test` shares the tests between three workers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import ENGINES, FAULTS, HERE, LAB, SAMPLE, SLOW_ENGINES, TRIALS, WAIT, WAITING, stream

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("nodeid", "expected"),
    [
        ("tests/lab/test_revert.py::test_a", LAB),
        ("tests/lab/test_watch.py::test_a", WAITING),
        ("tests/lab/test_vllm.py::test_a", ENGINES),
        ("tests/lab/test_fault_sample.py::test_a[x/unit/y]", FAULTS),
        ("tests/faults/test_local_sample.py::test_a", HERE),
        ("tests/unit/core/test_labels.py::test_a[/lab/test_lab_]", HERE),
    ],
)
def test_a_test_belongs_to_the_stream_of_its_place(nodeid: str, expected: str) -> None:
    assert stream(nodeid) == expected


def test_the_files_that_are_named_are_there() -> None:
    assert all((ROOT / "tests" / name.lstrip("/")).is_file() for name in (SAMPLE, *WAIT, *SLOW_ENGINES, *TRIALS))


def test_no_two_workers_share_a_stream() -> None:
    """The real scheduler, asked about two files that take no time; both are of one stream, so of one worker."""
    files = ["tests/unit/core/audit/test_verdict.py", "tests/unit/core/judging/test_baseline.py"]
    command = [sys.executable, "-m", "pytest", "-n", "3", "-v", "-p", "no:cacheprovider", *files]
    said = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, timeout=60).stdout
    workers = re.findall(r"^\[(gw\d)\].*PASSED", said, re.MULTILINE)
    assert len(workers) > 10
    assert len(set(workers)) == 1
