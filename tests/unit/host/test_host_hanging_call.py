"""A call that hangs with the host's lock, its controller long gone, may not keep the saved configuration away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import Failure, holders, keeper
from changectl_host.deadman import Sleeper
from changectl_host.locks import host_lock
from changectl_host.state import Run

MODULES = str(Path(keeper.__file__).parents[1])
HOLD = """
import sys, time
from changectl_host.locks import host_lock
with host_lock(sys.argv[1]):
    print("held")
    time.sleep(99)
"""


@pytest.fixture
def hanging(host: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-uc", HOLD, str(host.state)], env={**os.environ, "PYTHONPATH": MODULES},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def written(host: Any) -> Path:
    path: Path = host.edited()
    host.lease()
    host.arm(path)
    host.write(path, b"old", b"new")
    return path


def test_a_call_that_somebody_stopped_is_ended_and_the_saved_file_comes_back(host: Any, request: Any) -> None:
    path = written(host)
    hanging = request.getfixturevalue("hanging")
    os.kill(hanging.pid, signal.SIGSTOP)
    host.lease(0.2)
    assert (host.fired(seconds=20)["outcome"], path.read_bytes()) == ("restored", b"old")
    assert hanging.wait(5) == -signal.SIGKILL
    # What was about to be done is told before it is done.
    told = [event for event in host.events() if event["event"] == "hanging_call.intent"]
    assert [event["pids"] for event in told] == [[hanging.pid]]


def test_a_call_that_hangs_far_beyond_the_service_s_stop_is_ended(host: Any, request: Any) -> None:
    path = written(host)
    hanging = request.getfixturevalue("hanging")
    os.kill(host.keeper(), signal.SIGKILL)  # another sleeper of ours takes its place, with less patience
    host.wait(lambda: host.keeper() is None)
    host.lease(0.1)
    run = Run(host.run, str(host.state))
    lock = keeper.hold(run)
    assert lock is not None
    sleeper = Sleeper(run, lock)
    sleeper.hangs = -54.0
    assert sleeper.watch() == 0
    assert (path.read_bytes(), hanging.wait(5)) == (b"old", -signal.SIGKILL)


def test_a_call_that_is_at_work_is_waited_for(host: Any, request: Any) -> None:
    path = written(host)
    hanging = request.getfixturevalue("hanging")
    host.lease(0.1)
    with pytest.raises(AssertionError, match="in vain"):
        host.fired(seconds=8)
    assert (path.read_bytes(), hanging.poll()) == (b"new", None)


def test_a_refusal_names_who_holds_the_lock(host: Any, hanging: subprocess.Popen[str]) -> None:
    os.kill(hanging.pid, signal.SIGSTOP)
    with (
        pytest.raises(Failure, match=rf"process {hanging.pid} \(python3?[0-9.]*, stopped\)"),
        host_lock(str(host.state), 0.1),
    ):
        pass


def test_who_only_waits_for_a_lock_does_not_hold_it(host: Any, hanging: subprocess.Popen[str]) -> None:
    waiting = subprocess.Popen([sys.executable, "-uc", HOLD, str(host.state)],
                               env={**os.environ, "PYTHONPATH": MODULES}, stdout=subprocess.DEVNULL)  # fmt: skip
    try:
        host.wait(lambda: any(link.name for link in Path(f"/proc/{waiting.pid}/fd").iterdir()
                              if link.is_symlink() and os.path.realpath(link).endswith("/lock")))  # fmt: skip
        assert [item.pid for item in holders.holders(str(host.state / "lock"))] == [hanging.pid]
    finally:
        waiting.kill()
        waiting.wait()
