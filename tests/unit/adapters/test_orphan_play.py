"""A play whose controller was killed goes on by itself; it may still act only as long as its run holds the host."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.adapters.play_desk import Desk

from changectl_host.locks import host_lock

CONTROLLER = """
import json, sys
from pathlib import Path
from changectl.adapters.playbooks import RunnerPlaybooks
from changectl.adapters.shipped import playbooks_folder
from changectl.core.ports import HostAddress
source, variables, environ = json.load(sys.stdin)
RunnerPlaybooks(Path(source), playbooks_folder(), environ=environ).run(
    "apply", HostAddress("here"), variables, timeout=120)
"""


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    folder = Path(tempfile.mkdtemp(prefix="desk-", dir="/var/tmp"))
    made = Desk(folder)
    monkeypatch.setenv("CHANGECTL_HOST_DIR", str(made.host_folder))
    made.lease()
    made.call("capture", files=[str(made.config)])
    yield made
    shutil.rmtree(folder, ignore_errors=True)


def taken_over(desk: Desk) -> None:
    desk.lease(generation=2, nonce="later")


def ran_out(desk: Desk) -> None:
    desk.lease(seconds=0.05)
    time.sleep(0.1)


def given_to_another_run(desk: Desk) -> None:
    desk.call("release", nonce="desk")
    desk.lease(run="R-2", nonce="theirs")


def still_held(_: Desk) -> None:
    """The control: nothing but the lease keeps an orphan from writing."""


@pytest.mark.parametrize(
    ("meanwhile", "left"), [(taken_over, b"1"), (ran_out, b"1"), (given_to_another_run, b"1"), (still_held, b"2")]
)
def test_an_orphan_that_waited_for_its_turn_writes_nothing_once_its_run_does_not_hold_the_host(
    desk: Desk, meanwhile: Callable[[Desk], None], left: bytes
) -> None:
    variables = {**desk.common, "changectl_writes": desk.writes(b"2"), "changectl_lock_wait": 60}
    with host_lock(str(desk.folder / "s")):
        controller = start(desk, variables)
        orphan = until(lambda: next(iter(waiting(desk)), None))
        controller.send_signal(signal.SIGKILL)
        controller.wait()
        time.sleep(0.5)
        assert waiting(desk) == [orphan], "the play has to outlive its controller, or this shows nothing"
        meanwhile(desk)
    until(lambda: not Path(f"/proc/{orphan}").exists())
    assert desk.config.read_bytes() == left
    kinds = [json.loads(line)["event"] for line in (desk.folder / "s/runs/R-1/events.jsonl").read_text().splitlines()]
    assert ("write.intent" in kinds) == (left == b"2")


def start(desk: Desk, variables: dict[str, Any]) -> subprocess.Popen[bytes]:
    """A controller of its own, from which ansible-runner starts the real ansible-playbook."""
    process = subprocess.Popen([sys.executable, "-c", CONTROLLER], stdin=subprocess.PIPE, start_new_session=True)
    assert process.stdin is not None
    process.stdin.write(json.dumps([str(desk.source), variables, dict(desk.plays.environ)]).encode())
    process.stdin.close()
    return process


def waiting(desk: Desk) -> list[int]:
    """The processes beside this one that have the host's lock open."""
    lock = desk.folder / "s" / "lock"
    found = set()
    for place in Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if place.readlink() == lock:
                found.add(int(place.parts[2]))
        except OSError:
            continue
    return sorted(found - {os.getpid()})


def until(condition: Callable[[], Any], seconds: float = 60.0) -> Any:
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found
