"""A host of our own: a state folder, a configuration folder, and the calls with their usual arguments."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import dispatch, keeper
from changectl_host.state import Run


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _done(fired: dict[str, Any] | None) -> dict[str, Any] | None:
    return fired if fired is not None and fired.get("state") == "done" else None


class Host:
    """Calls the host program in this process for one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.etc = folder / "etc"
        self.etc.mkdir()
        self.run = "R-1"
        self.generation = 1
        self.nonce = "first"

    @property
    def run_folder(self) -> Path:
        return self.state / "runs" / self.run

    def call(self, name: str, **args: Any) -> dict[str, Any]:
        return dispatch(name, {"run": self.run, "generation": self.generation, "state_dir": str(self.state), **args})

    def file(self, name: str, data: bytes) -> Path:
        path = self.etc / name
        path.write_bytes(data)
        return path

    def stage(self, data: bytes) -> str:
        self.call("stage", sha256=digest(data), content=base64.b64encode(data).decode())
        return digest(data)

    def write(self, path: Path, old: bytes | None, new: bytes | None) -> dict[str, Any]:
        expect = "absent" if old is None else digest(old)
        staged = "absent" if new is None else self.stage(new)
        return self.call("write", path=str(path), expect=expect, staged=staged)

    def edited(self) -> Path:
        """A configuration file that was saved by the run, holding "old"."""
        path = self.file("a.conf", b"old")
        self.call("capture", files=[str(path)])
        return path

    def lease(self, seconds: float = 600.0, **other: Any) -> dict[str, Any]:
        people = {"owner": "kim", "controller": "desk-1"}
        return self.call("lease", seconds=seconds, **{"nonce": self.nonce, **people, **other})

    def give_back(self) -> None:
        """From here on nobody holds the host."""
        self.call("release", nonce=self.nonce)

    def become(self, **other: Any) -> None:
        """Act for another run, or as a later generation, with a lease of its own."""
        if "run" in other:
            self.give_back()
        self.run, self.generation = other.get("run", self.run), other.get("generation", self.generation)
        self.nonce = f"{self.run} {self.generation}"
        self.lease()

    def arm(self, *paths: Path, **other: Any) -> dict[str, Any]:
        return self.call("arm", nonce=self.nonce, only=[str(path) for path in paths] or None, **other)

    def disarm(self, outcome: str = "kept", **other: Any) -> dict[str, Any]:
        return self.call("disarm", **{"nonce": self.nonce, "outcome": outcome, **other})

    def standing(self) -> dict[str, Any]:
        return self.call("standing")

    def keeper(self) -> int | None:
        """The process that keeps watch over the run."""
        found = keeper.running(Run(self.run, str(self.state)))
        return None if found is None else found.get("pid", 0)

    def wait(self, what: Callable[[], Any], seconds: float = 10.0) -> Any:
        """What came true in time."""
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"waited {seconds:g} s in vain; {self.standing()}"
            time.sleep(0.01)
        return found

    def fired(self, seconds: float = 10.0) -> dict[str, Any]:
        """What the dead-man did, once it is done."""
        return dict(self.wait(lambda: _done(self.standing()["fired"]), seconds))

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run_folder / "events.jsonl").read_text().splitlines()]

    def names(self) -> set[str]:
        return {entry.name for entry in self.etc.iterdir()}


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder on a file system with extended attributes, which a temporary file system may not have."""
    folder = Path(tempfile.mkdtemp(prefix="changectl-test-", dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def host_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this host's lease lies: never the machine's own."""
    folder = tmp_path / "host-folder"
    monkeypatch.setenv("CHANGECTL_HOST_DIR", str(folder))
    return folder


@pytest.fixture
def host(newcomer: Host) -> Host:
    """A host that our run holds: it has a lease."""
    newcomer.lease()
    return newcomer


@pytest.fixture
def newcomer(place: Path) -> Iterator[Host]:
    """A host on which nobody has a lease yet."""
    made = Host(place)
    yield made
    for lock in made.state.rglob("keeper.lock"):
        run = str(lock.parent.relative_to(made.state / "runs"))
        found = keeper.running(Run(run, str(made.state)))
        if found:
            os.kill(found["pid"], signal.SIGKILL)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
