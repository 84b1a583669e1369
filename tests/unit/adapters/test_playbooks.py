"""Our plays through the real ansible-runner, on this machine: what they do, what they leave behind, how they fail."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.play_desk import HERE, SECRET, Desk, read

from changectl.core.errors import ContactLost, HostCallError
from changectl_host import dispatch

SLOW = """\
- hosts: "{{ changectl_host_name }}"
  gather_facts: false
  tasks:
    - ansible.builtin.command: sleep 60
"""
OTHER_HOST = """\
- hosts: nobody
  gather_facts: false
  tasks: []
"""


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    folder = Path(tempfile.mkdtemp(prefix="desk-", dir="/var/tmp"))
    made = Desk(folder)
    monkeypatch.setenv("CHANGECTL_HOST_DIR", str(made.host_folder))
    made.lease()
    yield made
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def service(desk: Desk) -> Iterator[dict[str, Any]]:
    """A small web server as the service of a `command` manager."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(desk.folder)]
    process = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    manager = {"command": {"start": start, "stop": None, "cwd": str(desk.folder), "pid": {"port": port}}}
    _until(lambda: _answers(port))
    yield manager
    process.kill()
    process.wait()
    seen = dispatch("inspect", {"manager": manager, "files": []})["process"]
    if seen is not None:
        os.kill(seen["pid"], signal.SIGKILL)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _until(condition: Any, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_change_and_its_way_back_reach_file_and_service(desk: Desk, service: dict[str, Any]) -> None:
    desk.call("capture", files=[str(desk.config)], manager=service, process=True)
    action = {"daemon_reload": False, "reset_failed": True, "stop_timeout": 5, "environment_from_snapshot": True}
    given = {**desk.common, "changectl_manager": service}
    first = desk.call("inspect", manager=service, files=[])["process"]["pid"]

    result = desk.plays.run("apply", HERE, {**given, "changectl_writes": desk.writes(b"2"),
                            "changectl_service": {**action, "action": "restart"}}, timeout=60)  # fmt: skip
    second = desk.call("inspect", manager=service, files=[])["process"]["pid"]
    assert desk.config.read_bytes() == b"2"
    assert result.answers[0]["writes"][0]["method"] == "exchange"
    assert second != first

    result = desk.plays.run("restore", HERE, {**given, "changectl_service": action}, timeout=60)
    assert desk.config.read_bytes() == b"1"
    assert desk.call("inspect", manager=service, files=[])["process"]["pid"] not in (first, second)
    assert result.answers[0]["files"] == {str(desk.config): "restored"}


def test_a_refusal_of_the_host_keeps_its_reason_and_words(desk: Desk) -> None:
    desk.call("capture", files=[str(desk.config)])
    writes = desk.writes(b"2")
    desk.config.write_bytes(b"mine")
    with pytest.raises(HostCallError, match=r"here: .*a\.conf") as caught:
        desk.plays.run("apply", HERE, {**desk.common, "changectl_writes": writes}, timeout=60)
    assert caught.value.reason == "changed_by_other"
    assert caught.value.details["written"] is False
    assert desk.config.read_bytes() == b"mine"


def test_what_a_host_told_is_never_taken_as_a_template(desk: Desk) -> None:
    witness = desk.folder / "run-by-template"
    trap = desk.folder / ("x{{ lookup('pipe', 'touch " + str(witness) + "') }}.conf")
    writes = [{**desk.writes(b"2")[0], "path": str(trap)}]
    with pytest.raises(HostCallError):
        desk.plays.run("apply", HERE, {**desk.common, "changectl_writes": writes}, timeout=60)
    assert not witness.exists()


def test_a_play_runs_on_the_python_that_it_is_given_and_not_on_one_that_ansible_finds(desk: Desk) -> None:
    shim = desk.folder / "bin" / "python3.13"
    shim.parent.mkdir()
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    desk.inventory(ansible_connection="local")
    broken = {**desk.plays.environ, "PATH": f"{shim.parent}:{desk.plays.environ['PATH']}"}
    plays = replace(desk.plays, environ=broken)
    desk.call("capture", files=[str(desk.config)])
    given = {**desk.common, "changectl_writes": desk.writes(b"2"), "ansible_python_interpreter": sys.executable}

    plays.run("apply", HERE, given, timeout=60)

    assert desk.config.read_bytes() == b"2"


def test_a_path_with_braces_is_a_path(desk: Desk) -> None:
    desk.config = desk.config.parent / "a{{ 1 + 1 }}.conf"
    desk.config.write_bytes(b"1")
    desk.call("capture", files=[str(desk.config)])
    desk.plays.run("apply", HERE, {**desk.common, "changectl_writes": desk.writes(b"2")}, timeout=60)
    assert desk.config.read_bytes() == b"2"


def test_a_play_that_misses_its_input_is_a_failure_with_its_sentence(desk: Desk) -> None:
    with pytest.raises(HostCallError, match=r"apply\.yml needs") as caught:
        desk.plays.run("apply", HERE, {"changectl_run": "", "changectl_generation": 1}, timeout=60)
    assert caught.value.reason == "play_failed"


def test_secrets_of_the_inventory_stand_in_no_process_and_in_no_file_and_nothing_is_left(desk: Desk) -> None:
    desk.inventory(ansible_connection="local", ansible_python_interpreter=sys.executable, vault_key=SECRET,
                   ansible_password=SECRET, ansible_become_password=SECRET)  # fmt: skip
    desk.call("capture", files=[str(desk.config)])
    seen: list[str] = []
    folders: set[Path] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for pid in desk.processes():
                if SECRET.encode() in read(Path(f"/proc/{pid}/cmdline")) + read(Path(f"/proc/{pid}/environ")):
                    seen.append(f"process {pid}")
                words = read(Path(f"/proc/{pid}/cmdline")).decode(errors="replace").split("\0")
                folders.update(Path(word[1:]).parent for word in words if word.endswith("variables.json"))
            for folder in folders:
                seen.extend(str(path) for path in folder.rglob("*") if SECRET.encode() in read(path))
                if folder.exists() and folder.stat().st_mode & 0o077:
                    seen.append(f"{folder} is open")
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        desk.plays.run("apply", HERE, {**desk.common, "changectl_writes": desk.writes(b"2")}, timeout=60)
    finally:
        done.set()
        watcher.join()
    assert seen == []
    assert len(folders) == 1
    assert not any(folder.exists() for folder in folders)
    left = [path for path in desk.folder.rglob("*") if path.is_file() and path != desk.source]
    assert not [path for path in left if SECRET.encode() in read(path)]


def test_a_password_for_become_goes_through_the_prompt_alone(desk: Desk) -> None:
    sudo = desk.folder / "sudo"
    sudo.write_text('#!/bin/sh\nwhile [ "$1" != -u ]; do shift; done; shift 2; exec "$@"\n')
    sudo.chmod(0o755)
    desk.inventory(ansible_connection="local", ansible_python_interpreter=sys.executable, ansible_become="true",
                   ansible_become_exe=sudo)  # fmt: skip
    desk.call("capture", files=[str(desk.config)])
    plays = replace(desk.plays, become_password=SECRET)
    plays.run("apply", HERE, {**desk.common, "changectl_writes": desk.writes(b"2")}, timeout=60)
    assert desk.config.read_bytes() == b"2"


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no ssh client on this machine")
def test_a_host_that_cannot_be_reached_is_contact_lost(desk: Desk) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    desk.inventory(ansible_host="127.0.0.1", ansible_port=port)
    with pytest.raises(ContactLost, match="here is unreachable"):
        desk.plays.run("restore", HERE, desk.common, timeout=60)


def test_a_job_that_is_killed_is_contact_lost_whatever_it_did(desk: Desk) -> None:
    plays = desk.own("slow", SLOW)

    def kill() -> None:
        _until(lambda: _sleeps(desk))
        for pid in desk.processes():
            os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(ContactLost, match="without its final report"):
        plays.run("slow", HERE, {}, timeout=60)
    killer.join()
    _end_sleepers()


def test_a_job_that_takes_too_long_is_ended_and_contact_is_lost(desk: Desk) -> None:
    begun = time.monotonic()
    with pytest.raises(ContactLost, match="without its final report"):
        desk.own("slow", SLOW).run("slow", HERE, {}, timeout=4)
    assert time.monotonic() - begun < 30
    assert desk.processes() == []
    _end_sleepers()


def test_a_job_ends_when_that_is_asked_for(desk: Desk) -> None:
    begun = time.monotonic()
    plays = replace(desk.own("slow", SLOW), cancel=lambda: time.monotonic() - begun > 3)
    with pytest.raises(ContactLost):
        plays.run("slow", HERE, {}, timeout=60)
    assert time.monotonic() - begun < 30
    assert desk.processes() == []
    _end_sleepers()


def test_a_play_that_reached_another_host_does_not_count(desk: Desk) -> None:
    with pytest.raises((HostCallError, ContactLost)):
        desk.own("other", OTHER_HOST).run("other", HERE, {}, timeout=60)


def test_signal_handlers_stay_ours(desk: Desk) -> None:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    desk.call("capture", files=[str(desk.config)])
    desk.plays.run("restore", HERE, desk.common, timeout=60)
    assert {number: signal.getsignal(number) for number in before} == before


def _sleeps(desk: Desk) -> bool:
    return bool(_sleepers()) and bool(desk.processes())


def _sleepers() -> list[int]:
    """The slow play's command, a descendant of this test or left behind by it."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/cmdline")
        if read(path) == b"sleep\x0060\x00" and b"desk-" in read(path.parent / "environ")
    ]


def _end_sleepers() -> None:
    for pid in _sleepers():
        os.kill(pid, signal.SIGKILL)
