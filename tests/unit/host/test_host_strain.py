"""Signs of a host in trouble: counters, the kernel's log, the service's own cgroup."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from changectl_host import dispatch, procfs, strain


def test_the_kernels_counters_stand_in_the_hosts_answer() -> None:
    answer = dispatch("host", {})
    assert {"oom_kill", "pswpin"} <= answer["counters"].keys()
    assert "kernel_log" not in answer


def test_the_kernels_log_is_read_where_it_was_asked_for_and_missed_where_it_cannot_be() -> None:
    answer = dispatch("host", {"since": time.time() - 60})
    assert isinstance(answer.get("kernel_log"), list) or "kernel_log" in answer["missing"]


def test_only_lines_of_trouble_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = "usb 1-1: new device\nNVRM: Xid (PCI:0000:01:00): 79\nOut of memory: Killed process 9 (llama)\n"
    program = tmp_path / "journalctl"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{log}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert strain.kernel_log(1.0) == log.splitlines()[1:]


def test_a_log_that_cannot_be_read_is_no_empty_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    answer = dispatch("host", {"since": 1.0})
    assert "kernel_log" not in answer
    assert "journalctl" in answer["missing"]["kernel_log"]


def test_a_process_without_a_cgroup_of_its_own_counts_nothing() -> None:
    assert strain.memory_events(None, None) is None
    assert strain.memory_events(None, "/not/there.service") is None
    assert strain.memory_events(2**30, None) is None


def test_the_environment_of_a_process_that_is_gone_is_not_an_empty_one() -> None:
    assert procfs.environ(2**30) is None
    assert procfs.environ(os.getpid()) is not None


def test_the_running_program_is_known_although_another_one_lies_at_its_path(tmp_path: Path) -> None:
    program = tmp_path / "sleeper"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    process = subprocess.Popen([str(program), "30"])
    try:
        running = procfs.program(process.pid)
        newer = tmp_path / "newer"
        newer.write_bytes(Path(sys.executable).read_bytes())
        newer.rename(program)
        assert running is not None
        assert procfs.program(process.pid) == running
        assert running[2] != program.stat().st_ino
    finally:
        process.kill()
        process.wait()
