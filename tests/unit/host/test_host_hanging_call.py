"""A call that hangs with the host's lock, its controller long gone, may not keep the saved configuration away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, holders, keeper, procfs
from changectl_host.hanging import Hanging
from changectl_host.locks import host_lock, lease_lock_path
from changectl_host.state import Run

MODULES = str(Path(keeper.__file__).parents[1])
HOLD = """
import fcntl, os, sys, time
for path in sys.argv[1:]:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
print("held")
time.sleep(99)
"""

Holding = Callable[..., "subprocess.Popen[str]"]


def lock_of(host: Any) -> str:
    return str(host.state / "lock")


@pytest.fixture
def hold(host: Any) -> Iterator[Holding]:
    """Starts a process that takes locks (the host's own if none is named) and keeps them."""
    begun: list[subprocess.Popen[str]] = []

    def start(*paths: str, command: tuple[str, ...] = (sys.executable, "-uc", HOLD)) -> subprocess.Popen[str]:
        words = [*command, *(paths or [lock_of(host)])]
        begun.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        assert begun[-1].stdout is not None
        assert begun[-1].stdout.readline() == "held\n"
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


def written(host: Any) -> Path:
    path: Path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    return path


def told(host: Any, event: str) -> list[list[int]]:
    return [line["pids"] for line in host.events() if line["event"] == event]


def test_a_call_that_somebody_stopped_is_ended_and_the_saved_file_comes_back(host: Any, hold: Holding) -> None:
    path, hanging = written(host), hold()
    os.kill(hanging.pid, signal.SIGSTOP)
    host.lease(0.2)
    assert (host.fired(seconds=20)["outcome"], path.read_bytes()) == ("restored", b"old")
    assert hanging.wait(5) == -signal.SIGKILL
    # Said before it was done, and once.
    assert told(host, "hanging_call.intent") == told(host, "hanging_call.outcome") == [[hanging.pid]]


def test_one_that_has_the_lease_s_lock_too_is_ended_as_well(host: Any, hold: Holding) -> None:
    path = written(host)
    host.lease(0.5)
    hanging = hold(lock_of(host), lease_lock_path())
    os.kill(hanging.pid, signal.SIGSTOP)
    assert (host.fired(seconds=60)["outcome"], path.read_bytes()) == ("restored", b"old")
    assert hanging.wait(5) == -signal.SIGKILL


def test_a_call_that_is_at_work_is_waited_for(host: Any, hold: Holding) -> None:
    path, at_work = written(host), hold()
    host.lease(0.1)
    for _ in range(4):  # stopped by a debugger for moments, but never for long
        os.kill(at_work.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(at_work.pid, signal.SIGCONT)
        time.sleep(1.5)
    assert (path.read_bytes(), at_work.poll()) == (b"new", None)


class Impatient(Hanging):
    hangs = 0.2


def looked(host: Any, *, still: Callable[[], bool] = lambda: True, times: int = 3) -> None:
    """What a sleeper with little patience does, some times in a row."""
    hanging = Impatient(Run(host.run, str(host.state)))
    for _ in range(times):
        hanging.look(0.1, still)
        time.sleep(0.25)


def test_a_call_that_hangs_far_beyond_the_service_s_stop_is_ended(host: Any, hold: Holding) -> None:
    written(host)
    hanging = hold()
    looked(host)
    assert hanging.wait(5) == -signal.SIGKILL
    assert told(host, "hanging_call.intent") == [[hanging.pid]]


def test_each_call_has_its_own_time(host: Any, hold: Holding) -> None:
    written(host)
    hanging = Impatient(Run(host.run, str(host.state)))
    first = hold()
    hanging.look(0.1, lambda: True)
    first.kill()
    first.wait()
    time.sleep(0.5)
    second = hold()
    hanging.look(0.1, lambda: True)
    assert second.poll() is None


def test_nothing_is_ended_once_somebody_has_the_lease(host: Any, hold: Holding) -> None:
    written(host)
    at_work = hold()
    looked(host, still=lambda: False)
    assert at_work.poll() is None
    assert told(host, "hanging_call.intent") == []


def test_a_person_who_restores_by_hand_is_never_ended(host: Any, hold: Holding, tmp_path: Path) -> None:
    written(host)
    program = tmp_path / "program.pyz"
    program.write_text(HOLD.replace("sys.argv[1:]", "sys.argv[2:]"))
    restoring = hold(command=(sys.executable, "-u", str(program), "restore"))
    looked(host)
    assert restoring.poll() is None


def test_a_person_who_holds_the_lock_with_a_tool_is_only_named(host: Any) -> None:
    written(host)
    flock = subprocess.Popen(["flock", lock_of(host), "sleep", "99"], start_new_session=True)
    try:
        host.wait(lambda: holders.holders(lock_of(host)))
        looked(host)
        assert flock.poll() is None
        with pytest.raises(Failure, match=rf"process {flock.pid} \(flock\)"), host_lock(str(host.state), 0.1):
            pass
    finally:
        os.killpg(flock.pid, signal.SIGKILL)
        flock.wait()


def test_a_refusal_names_who_holds_the_lock(host: Any, hold: Holding) -> None:
    hanging = hold()
    os.kill(hanging.pid, signal.SIGSTOP)
    host.wait(lambda: (found := procfs.stat(hanging.pid)) is not None and found.state == "T")
    named = rf"process {hanging.pid} \(python[0-9.]*, stopped\)"
    with pytest.raises(Failure, match=named), host_lock(str(host.state), 0.1):
        pass


def test_who_only_waits_for_a_lock_does_not_hold_it(host: Any, hold: Holding) -> None:
    hanging = hold()
    waiting = subprocess.Popen([sys.executable, "-uc", HOLD, lock_of(host)], stdout=subprocess.DEVNULL)
    try:
        host.wait(lambda: any(os.path.realpath(link) == os.path.realpath(lock_of(host))
                              for link in Path(f"/proc/{waiting.pid}/fd").iterdir()))  # fmt: skip
        assert [item.pid for item in holders.holders(lock_of(host))] == [hanging.pid]
    finally:
        waiting.kill()
        waiting.wait()
