"""`make test` says all that is wrong, and not only what comes first."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PYTEST = """#!/bin/sh
echo "$@" >> "$CALLS"
case "$*" in *"$FAILS") exit 1;; esac
"""


@pytest.mark.parametrize(
    ("fails", "code"), [(" tests/e2e/test_demo.py", 2), ("--ignore=tests/e2e/test_demo.py", 2), ("nothing", 0)]
)
def test_a_part_that_fails_keeps_no_other_from_running_and_fails_the_whole(
    tmp_path: Path, fails: str, code: int
) -> None:
    program, calls = tmp_path / "pytest", tmp_path / "calls"
    program.write_text(PYTEST)
    program.chmod(0o755)
    (tmp_path / ".ready").touch()
    done = subprocess.run(
        ["make", "-C", str(ROOT), "-o", f"{tmp_path}/.ready", "test", f"VENV={tmp_path}", f"PYTEST={program}"],
        env={"PATH": "/usr/bin:/bin", "CALLS": str(calls), "FAILS": fails},
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert len(calls.read_text().splitlines()) == 2, done.stderr
    assert done.returncode == code
