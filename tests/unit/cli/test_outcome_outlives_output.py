"""How a run ended is its exit code, whatever becomes of the words about it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import changectl
from changectl.cli import _failures

SOURCES = Path(changectl.__file__).parent.parent
# A command that did something, then tells a lot about it.
SCRIPT = """
import sys
from changectl.cli import _failures
from changectl.reports.printer import Printer
_failures.open_streams()
printer = Printer()
sys.exit(_failures.tell(4, lambda: [printer.line("told " * 20) for _ in range(5000)] and None, "changectl show R1"))
"""


def in_shell(redirection: str, script: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(SOURCES), "PATH": os.environ["PATH"], "SCRIPT": script, "PYTHON": sys.executable}
    line = f'set -o pipefail; "$PYTHON" -c "$SCRIPT" {redirection}'
    return subprocess.run(["bash", "-c", line], env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "redirection", ["| head -n 1", "2>&1 | head -n 1", "> /dev/full", "> /dev/full 2>&1", ">&-", ">&- 2>&-", "2>&-"]
)
def test_a_reader_that_leaves_or_a_full_disk_changes_no_exit_code(redirection: str) -> None:
    done = in_shell(redirection, SCRIPT)

    assert done.returncode == 4
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if redirection == "> /dev/full":
        assert "exit code 4" in done.stderr
        assert "changectl show R1" in done.stderr


@pytest.mark.parametrize("options", ["'validate', 'none.yml'", "'validate', 'none.yml', '--json'"])
@pytest.mark.parametrize("redirection", ["> /dev/full 2>&1", "2>&1 | true", ">&- 2>&-"])
def test_an_error_that_cannot_be_told_keeps_its_exit_code(options: str, redirection: str, tmp_path: Path) -> None:
    script = (
        "import os, sys; from changectl.cli.main import main; "
        + f"os.chdir({str(tmp_path)!r}); sys.exit(main([{options}]))"
    )

    assert in_shell(redirection, script).returncode == 2


@pytest.mark.parametrize("error", [RuntimeError("no record"), BrokenPipeError(), ValueError("I/O on closed file")])
def test_whatever_goes_wrong_after_the_end_leaves_the_end(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise error

    show: Callable[[], None] = fail
    assert _failures.tell(0, show, "changectl show R1") == 0
    assert ("changectl show R1" in capsys.readouterr().err) == (not isinstance(error, BrokenPipeError))


def test_a_closed_stream_is_no_place_for_the_record(tmp_path: Path) -> None:
    script = f"""
import os, subprocess, sys
from changectl.cli import _failures
_failures.open_streams()
with open({str(tmp_path / "record")!r}, "w") as record:
    subprocess.run(["/bin/echo", "noise"])
"""
    assert in_shell("<&- >&- 2>&-", script).returncode == 0
    assert (tmp_path / "record").read_bytes() == b""
