"""A host of our own: a state folder, a configuration folder, and the calls with their usual arguments."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from changectl_host import dispatch


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Host:
    """Calls the host program in this process for one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.etc = folder / "etc"
        self.etc.mkdir()
        self.run = "R-1"
        self.generation = 1

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


@pytest.fixture
def host(place: Path) -> Host:
    return Host(place)


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
