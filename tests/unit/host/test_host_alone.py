"""What runs for a controller ends by itself when that one is not heard any more, and leaves nothing behind."""

from __future__ import annotations

import base64
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.host.test_host_doors import Door, generator

from changectl_host import procfs

SILENCE = 3.0  # seconds


class Load:
    """A load that would run for ten minutes, over a connection that nobody closes."""

    def __init__(self, folder: Path) -> None:
        pid_file = folder / "pid"
        source = (
            f"import os, time\nopen({str(pid_file)!r} + '.new', 'w').write(str(os.getpid()))\n"
            f"os.rename({str(pid_file)!r} + '.new', {str(pid_file)!r})\ntime.sleep(600)"
        )
        (folder / "host").mkdir()
        place = {"HOME": str(folder / "host"), "TMPDIR": str(folder / "host"), "PATH": os.environ["PATH"]}
        self.folder, self.door = folder / "host", Door(cwd=folder / "host", env=place)
        packed = base64.b64encode(generator(source)).decode()
        self.write({"id": 1, "call": "measure", "args": {"run": "R-1", "generator": packed}, "silence": SILENCE})
        while not pid_file.exists():  # a busy machine takes its time to start it
            self.write(None)
            time.sleep(0.05)
        self.pid = int(pid_file.read_text())

    def write(self, request: Any) -> None:
        assert self.door.process.stdin is not None
        self.door.process.stdin.write((json.dumps(request) if request else "").encode() + b"\n")
        self.door.process.stdin.flush()

    @property
    def running(self) -> bool:
        return procfs.stat(self.pid) is not None


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def load(place: Path) -> Load:
    return Load(place)


def test_a_load_that_nobody_listens_to_ends_and_the_program_with_it(load: Load) -> None:
    wait_for(lambda: not load.running)
    assert load.door.process.wait(5) != 0
    assert list(load.folder.iterdir()) == []


def test_a_load_goes_on_as_long_as_somebody_says_that_he_listens(load: Load) -> None:
    ends = time.monotonic() + 2 * SILENCE
    while time.monotonic() < ends:
        assert load.door.read() == {"id": 1, "alive": True}
        load.write(None)
    assert load.running
    load.door.close()
    assert not load.running


def test_a_killed_program_leaves_neither_its_load_nor_a_file(load: Load) -> None:
    assert list(load.folder.iterdir()) == []
    load.door.process.send_signal(signal.SIGKILL)
    wait_for(lambda: not load.running)
    assert list(load.folder.iterdir()) == []
    load.door.close()


def test_a_call_that_is_over_ends_nothing_however_long_nobody_speaks(place: Path) -> None:
    door = Door()
    assert door.process.stdin is not None
    door.process.stdin.write(b'{"id": 1, "call": "hello", "silence": 0.1}\n')
    door.process.stdin.flush()
    assert door.read()["ok"]["program"]
    time.sleep(1.5)
    door.send(2, "hello")
    assert door.read()["id"] == 2
    assert door.close() == 0
