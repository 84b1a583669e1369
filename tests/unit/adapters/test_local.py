"""The door to this machine, with the real host program behind it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl.adapters.doors import HostDoors
from changectl.adapters.local import LocalPipe
from changectl.adapters.shipped import playbooks_folder
from changectl.core.errors import ContactLost, HostCallError, InputError, Refused
from changectl.core.ports import Door, HostAddress
from changectl_host import bootstrap, program_zip

PASSWORD = "correct-horse-battery-staple"


def address(**variables: Any) -> HostAddress:
    return HostAddress(
        "here", {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **variables}
    )


@pytest.fixture
def door() -> Iterator[Door]:
    opened = HostDoors(playbooks_folder()).open(address())
    yield opened
    opened.close()


def children() -> set[int]:
    return {int(pid) for tasks in Path("/proc/self/task").iterdir() for pid in (tasks / "children").read_text().split()}


def test_the_host_program_says_who_it_is(door: Door) -> None:
    hello = door.call("hello", {}, timeout=10)
    assert hello["uid"] == os.getuid()
    assert hello["boot_id"]


def test_a_running_process_is_seen_with_its_arguments(door: Door, tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        while not Path(f"/proc/{process.pid}/cmdline").read_bytes():  # it has not become that program yet
            time.sleep(0.01)
        pid_file, config = tmp_path / "pid", tmp_path / "config"
        pid_file.write_text(str(process.pid))
        config.write_text("a: 1\n")
        manager = {"command": {"start": ["true"], "stop": None, "cwd": None, "pid": {"file": str(pid_file)}}}
        seen = door.call("inspect", {"manager": manager, "files": [str(config)]}, timeout=10)
    finally:
        process.kill()
        process.wait()
    assert seen["process"]["argv"] == ["sleep", "60"]
    assert seen["files"][str(config)]["size"] == 5


def test_a_call_that_is_not_known_is_a_failure_of_the_host_and_the_door_stays_open(door: Door) -> None:
    with pytest.raises(HostCallError) as caught:
        door.call("format_disk", {}, timeout=10)
    assert caught.value.reason == "unknown_call"
    assert door.call("hello", {}, timeout=10)


def test_nothing_runs_on_after_the_door_is_closed() -> None:
    before = children()
    opened = HostDoors(playbooks_folder()).open(address())
    assert len(children() - before) == 1
    opened.close()
    assert children() - before == set()


def test_a_host_program_that_is_killed_is_contact_lost_and_the_next_call_reaches_a_new_one() -> None:
    before = children()
    opened = HostDoors(playbooks_folder()).open(address())
    (child,) = children() - before
    os.kill(child, signal.SIGKILL)
    with pytest.raises(ContactLost, match="ended"):
        opened.call("hello", {}, timeout=10)
    assert opened.call("hello", {}, timeout=10)["uid"] == os.getuid()
    opened.close()


def test_a_python_that_is_too_old_is_refused_in_one_sentence(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "import sys; sys.version_info = (3, 6, 8); '
        "exec(sys.argv[1].replace('import json, sys', 'import json', 1))\" \"$2\"\n"
    )
    old.chmod(0o755)
    with pytest.raises(Refused, match=r"this host's Python is 3\.6; Python 3\.8 or newer is needed") as caught:
        HostDoors(playbooks_folder()).open(address(ansible_python_interpreter=str(old)))
    assert caught.value.reason == "python_too_old"


def test_an_interpreter_that_is_not_there_is_contact_lost_with_the_shells_words() -> None:
    with pytest.raises(ContactLost, match="/no/such/python"):
        HostDoors(playbooks_folder()).open(address(ansible_python_interpreter="/no/such/python"))


def test_a_connection_that_is_not_supported_is_said_to_be_so() -> None:
    with pytest.raises(InputError, match="use ssh or local"):
        HostDoors(playbooks_folder()).open(address(ansible_connection="winrm"))


def test_an_installation_without_its_host_program_says_so(tmp_path: Path) -> None:
    from changectl.adapters.doors import host_module

    with pytest.raises(InputError, match="reinstall changectl"):
        host_module(tmp_path, "no_such_module")


def test_the_environment_of_the_host_program_is_the_allowed_one(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", PASSWORD)
    opened = HostDoors(playbooks_folder()).open(address())
    try:
        child = max(children())
        assert PASSWORD.encode() not in Path(f"/proc/{child}/environ").read_bytes()
    finally:
        opened.close()


def test_a_closed_pipe_does_not_complain_about_what_it_could_not_send() -> None:
    pipe = LocalPipe("exit 3")
    time.sleep(0.1)
    with pytest.raises(ContactLost):
        pipe.send(b"x" * 1_000_000)
    pipe.close()


# -- a password that sudo did not read --------------------------------------------------------------------------------
def served(data: bytes) -> str:
    done = subprocess.run(
        [sys.executable, "-c", bootstrap.BOOTSTRAP], input=data, capture_output=True, check=False, timeout=20
    )
    return (done.stdout + done.stderr).decode()


def test_a_line_before_the_program_is_skipped() -> None:
    archive = program_zip()
    request = b'{"id": 1, "call": "hello", "args": {}}\n'
    said = served(f"{PASSWORD}\n".encode() + b"changectl %d\n" % len(archive) + archive + request)
    assert '"ok"' in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "data",
    [
        f"{PASSWORD}\n".encode(),
        f"{PASSWORD}\n{PASSWORD}\nchangectl 5\n12345".encode(),
        f"changectl {PASSWORD}\n".encode(),
        f"{PASSWORD}\nchangectl 1000\n{PASSWORD}".encode(),
        b"",
    ],
)
def test_what_comes_instead_of_the_program_is_never_quoted(data: bytes) -> None:
    said = served(data)
    assert "damaged_program" in said
    assert PASSWORD not in said


def test_a_sudo_that_does_not_ask_gets_the_program_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text('#!/bin/sh\nwhile [ "$1" != -u ]; do shift; done; shift 2; exec "$@"\n')
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    opened = HostDoors(playbooks_folder(), PASSWORD).open(address(ansible_become=True))
    try:
        assert opened.call("hello", {}, timeout=10)["uid"] == os.getuid()
    finally:
        opened.close()


def test_a_sudo_that_asks_gets_its_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(
        '#!/bin/sh\nread -r given; echo "$given" > "$(dirname "$0")/got"\n'
        'while [ "$1" != -u ]; do shift; done; shift 2; exec "$@"\n'
    )
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    opened = HostDoors(playbooks_folder()).open(address(ansible_become=True, ansible_become_password=PASSWORD))
    opened.close()
    assert (tmp_path / "got").read_text().strip() == PASSWORD


def test_a_sudo_that_refuses_is_contact_lost_with_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2\nexit 1\n")
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ContactLost, match="a password is required"):
        HostDoors(playbooks_folder()).open(address(ansible_become=True))
