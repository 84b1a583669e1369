"""Check mode of Ansible: nothing that changes something is done, and nothing is guessed about what it would answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.host.test_host_doors import ROOT, play

from changectl_host import MUTATING, system

NOT_DONE = "was not done"


@pytest.fixture
def changed(host: Any) -> Path:
    """A file that this run wrote, so that there is something to bring back."""
    path: Path = host.edited()
    host.write(path, b"old", b"new")
    return path


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with size and time of its last change."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "variables.json"]
    return {str(path): (path.stat().st_size, path.stat().st_ctime_ns) for path in files}


def test_no_play_does_anything_in_check_mode_and_each_says_so(host: Any, changed: Path, place: Path) -> None:
    started = place / "started"
    manager = {"command": {"start": ["touch", str(started)], "cwd": str(place), "pid": {"port": 9}}}
    common = {"changectl_run": host.run, "changectl_generation": 1, "changectl_state_dir": str(host.state),
              "changectl_manager": manager}  # fmt: skip
    writes = [{"path": str(changed), "expect": system.sha256(b"new"), "staged": host.stage(b"newer")}]
    plays: dict[str, dict[str, Any]] = {
        "apply": {"changectl_writes": writes, "changectl_service": {"action": "restart"}},
        "restore": {"changectl_service": {}},
        "service": {"changectl_service": {"action": "start"}},
    }
    (place / ".ansible").mkdir(exist_ok=True)  # Ansible's own
    before = tree(host.state), tree(host.etc)
    for name, given in plays.items():
        code, answer = play(name, {**common, **given}, place, "--check")
        assert code == 0, answer
        assert NOT_DONE in answer
        assert "changed=0 " in answer

    assert changed.read_bytes() == b"new"
    assert (tree(host.state), tree(host.etc)) == before
    assert not started.exists()


def module(call: str, args: str, folder: Path) -> str:
    """One call of the module in check mode; what it answered."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8",
        "ANSIBLE_LIBRARY": str(ROOT / "playbooks/library"),
        "ANSIBLE_MODULE_UTILS": str(ROOT / "playbooks/module_utils"),
        "CHANGECTL_HOST_DIR": os.environ["CHANGECTL_HOST_DIR"],
    }  # fmt: skip
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible", "localhost", "-i", "localhost,", "-c", "local", "--check",
         "-e", f"ansible_python_interpreter={sys.executable}", "-m", "changectl_host",
         "-a", f'{{"call": "{call}", "args": {args}}}'],
        capture_output=True, text=True, env=environment, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_call_that_only_looks_answers_in_check_mode_as_ever(place: Path) -> None:
    assert "hello" not in MUTATING
    answer = module("hello", "{}", place)
    assert NOT_DONE not in answer
    assert f'"uid": {os.geteuid()}' in answer


def test_every_call_that_changes_something_is_left_out_in_check_mode_and_promises_nothing(place: Path) -> None:
    for call in ("disarm", "stage"):
        assert call in MUTATING
        answer = module(call, "{}", place)
        assert f"check mode: {call} {NOT_DONE}" in answer
        assert '"changed": false' in answer
