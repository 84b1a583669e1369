"""What a fault does from outside of the disturbed command: to the engine, to a disk, to what the command left."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.bench import LocalBench

#: Fault -> what the driver is told to do at the point; the others are asked for and done here.
BY_ITSELF = {"kill": "KILL", "int": "INT", "term": "TERM", "hup": "HUP", "crash": None}
FILLER = "filler"
OPERATORS_PATIENCE = 15.0  # seconds that an operator waits for a run on an engine that hangs, before Ctrl-C
CHUNKS = (1 << 20, 1 << 12, 1 << 8, 1)


def ordered(fault: str) -> str | None:
    """What the driver does at the point; None: nothing, for nothing has to be done there."""
    return BY_ITSELF.get(fault, "ask")


def lines(trace: Path) -> list[dict[str, Any]]:
    """The faults that struck."""
    try:
        return [json.loads(line) for line in trace.read_bytes().splitlines()]
    except FileNotFoundError:
        return []


class Striker:
    """Watches one disturbed command, and does what its fault asks for, once."""

    def __init__(self, fault: str, bench: LocalBench, trace: Path, process: subprocess.Popen[bytes]) -> None:
        self._fault = fault
        self._bench = bench
        self._trace = trace
        self._process = process
        self._asked_at: float | None = None
        self._given_up = False
        self._orphans: list[int] = []

    def watch(self) -> None:
        """Look whether the point is reached, and strike."""
        if self._asked_at is None and ordered(self._fault) == "ask" and lines(self._trace):
            self._asked_at = time.monotonic()
            if self._fault.startswith("full-"):
                fill(self._place)
            elif self._fault == "hang":
                send_all(self._bench.engines(), signal.SIGSTOP)
            self._trace.with_name(f"{self._trace.name}.1").touch()
        if self._asked_at is None:
            return
        if self._fault == "orphan" and not self._orphans:
            self._orphan()
        waited = time.monotonic() - self._asked_at
        if self._fault == "hang" and not self._given_up and waited > OPERATORS_PATIENCE:
            self._given_up = True
            self._process.send_signal(signal.SIGINT)

    def later(self) -> None:
        """After the host had its time: a late orphan wakes up, and gets time to do harm."""
        send_all(self._orphans, signal.SIGCONT)
        for pid in self._orphans:
            wait_gone(pid)

    def mended(self) -> bool:
        """Take away what a person would mend; tells whether there was something."""
        if self._fault.startswith("full-"):
            (self._place / FILLER).unlink(missing_ok=True)
        elif self._fault == "hang":
            send_all(self._bench.engines(), signal.SIGCONT)
        else:
            return False
        return True

    @property
    def _place(self) -> Path:
        return self._bench.folder / self._fault.removeprefix("full-")

    def _orphan(self) -> None:
        """As soon as Ansible works for the command: freeze all of it, then end the command with no time to say so."""
        children = list(descendants(self._process.pid))
        if not any("ansible-playbook" in command_line(pid) for pid in children):
            return
        self._orphans = [pid for pid in children if "ansible" in command_line(pid)]
        send_all(self._orphans, signal.SIGSTOP)
        self._process.kill()


def fill(place: Path) -> None:
    """Write until not one more byte has room. Raises RuntimeError on a disk that does not fill."""
    with (place / FILLER).open("wb", buffering=0) as file:
        for size in CHUNKS:
            try:
                for _ in range(1 << 12):
                    if not file.write(b"\0" * size):
                        break
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                continue
            raise RuntimeError(f"{place} is no small disk")


def end_engine(bench: LocalBench) -> None:
    """End the engine of a bench by force."""
    send_all(bench.engines(), signal.SIGKILL)


def send_all(pids: list[int], number: signal.Signals) -> None:
    """Send a signal to processes, of which some may be gone."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def descendants(pid: int) -> Iterator[int]:
    """Children of a process, and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in map(int, task.read_text().split()):
                yield child
                yield from descendants(child)


def command_line(pid: int) -> str:
    """A process's command line; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def wait_gone(pid: int, seconds: float = 20.0) -> None:
    """Wait until a process has ended, or the time is over."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and command_line(pid):
        time.sleep(0.05)
