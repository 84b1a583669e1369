"""One interpreter may be called by several names; which packages it takes is decided by its name."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from changectl_host import process

SLEEP = ["-c", "import time; time.sleep(60)"]
Describe = Callable[..., tuple[list[object], str | None]]


@pytest.fixture
def described() -> Iterator[Describe]:
    """Starts an interpreter under a name; tells which file it runs, and the environment that the name leads to."""
    running: list[subprocess.Popen[bytes]] = []

    def start(name: str, *, path: str = "/usr/bin", cwd: Path | None = None) -> tuple[list[object], str | None]:
        real = os.path.realpath(sys.executable)
        running.append(subprocess.Popen([name, *SLEEP], executable=real, env={"PATH": path}, cwd=cwd))
        facts = process.describe(running[-1].pid)
        assert facts is not None
        return [facts["exe"], *facts["program"]], facts["venv"]

    yield start
    for one in running:
        one.kill()
        one.wait()


def environment(folder: Path) -> Path:
    """A Python environment; returns the name of its interpreter."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    python = folder / "bin" / "python3"
    python.symlink_to(os.path.realpath(sys.executable))
    return python


def test_two_names_of_one_file_lead_to_different_environments(described: Describe, tmp_path: Path) -> None:
    plain, python = tmp_path / "plain" / "bin", environment(tmp_path / "venv")
    plain.mkdir(parents=True)
    (plain / "python3").symlink_to(os.path.realpath(sys.executable))
    inside, outside = described(str(python)), described(str(plain / "python3"))

    assert inside[0] == outside[0]
    assert (inside[1], outside[1]) == (str(tmp_path / "venv"), "")


def test_a_name_without_a_folder_is_looked_up_as_the_process_would(described: Describe, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv")
    assert described("python3", path=f"/nowhere:{python.parent}")[1] == str(tmp_path / "venv")
    assert described("./venv/bin/python3", cwd=tmp_path)[1] == str(tmp_path / "venv")


def test_a_name_that_leads_nowhere_tells_nothing(described: Describe) -> None:
    assert described("an-invented-name", path="/nowhere")[1] is None
