"""One llama.cpp service on one host of the lab, and an operator's desk to change it from: what benches of runs need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.lab.desk import CONSOLE_SCRIPT, Desk
from tests.lab.harness import install, root
from tests.lab.harness.lab import Lab
from tests.lab.harness.services import LlamaService

from changectl.core.ports import Event
from changectl.store import open_store

ATTEMPTS = 4
INCONCLUSIVE, REFUSED = 5, 3  # exit codes
_TIMES = ("ActiveExitTimestampMonotonic", "InactiveEnterTimestampMonotonic", "ExecMainStartTimestampMonotonic")


@dataclass
class BenchDesk:
    """The service, and commands on it, each from a fresh home: no connection of an earlier one helps."""

    service: LlamaService
    folder: Path
    desk: Desk
    _runs: int = field(default=0)

    def timed(
        self, command: Sequence[object], expected: Sequence[int] = (0,), timeout: float = 300
    ) -> tuple[float, str]:
        """Wall seconds of a command in the project, and its stdout; raises RuntimeError on another exit code."""
        self._runs += 1
        home = self.folder / f"home-{self._runs}"
        home.mkdir()
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        begun = time.perf_counter()
        done = subprocess.run(
            [str(word) for word in command], cwd=self.desk.folder, env=environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        seconds = time.perf_counter() - begun
        if done.returncode not in expected:
            said = "\n".join(line for line in (done.stdout + done.stderr).splitlines() if '"text": "' in line)
            raise RuntimeError(f"{command[0]} ended with {done.returncode}: {said or done.stderr[-2000:]}")
        return seconds, done.stdout

    def apply(self, slots: int, *, expected: Sequence[int] = (0,), more: str = "") -> Applied:
        """Set the number of slots with `changectl apply`."""
        plan = self.desk.plan(f"{{parameter: {{name: parallel, to: {slots}}}}}", more=more)
        seconds, out = self.timed([CONSOLE_SCRIPT, "apply", "-i", "hosts.yml", "--json", plan], expected)
        return Applied(seconds, self.events(json.loads(out)["run"]["run"]), self.restart_seconds())

    def judged(self, slots: int, *, expected: Sequence[int], more: str = "") -> Applied:
        """Like `apply`, until its baseline is one to compare with: on a busy machine it may be refused."""
        for _ in range(ATTEMPTS):
            applied = self.apply(slots, expected=(*expected, REFUSED), more=more)
            if applied.end["outcome"] != "refused":
                return applied
            if applied.end["reason"] != "baseline_invalid":
                raise RuntimeError(f"refused: {applied.end['reason']}")
        raise RuntimeError(f"the machine is too busy: {ATTEMPTS} baselines in a row were not fit to compare with")

    def keep(self, slots: int) -> Applied:
        """Like `apply`, until it is kept: on a busy machine the load generator may say that it could not keep up."""
        for _ in range(ATTEMPTS):
            applied = self.judged(slots, expected=(0, INCONCLUSIVE))
            if applied.kept:
                return applied
        raise RuntimeError(f"the machine is too busy: {ATTEMPTS} measurements in a row were not fit to judge by")

    def events(self, run: str) -> Sequence[Event]:
        """The journal of a run."""
        record = self.desk.folder / ".changectl"
        with open_store(record / "changectl.db", record / "key") as store:
            return store.journal.events(run)

    def restart_seconds(self) -> float:
        """What the last restart took the service itself, by the host's own clock: stopping, and loading.

        The pause between the two belongs to whoever restarts, and is not in it.
        """
        unit, host = self.service.unit, self.service.host
        shown = host.run(["systemctl", "show", unit, f"--property={','.join(_TIMES)}"]).stdout
        times = dict(line.split("=", 1) for line in shown.splitlines())
        stop_begun, stopped, started = (int(times[name]) for name in _TIMES)
        words = ["journalctl", f"--unit={unit}", "--output=json", "--grep=server is listening", "--lines=1"]
        listening = int(json.loads(host.run(words).stdout.splitlines()[-1])["__MONOTONIC_TIMESTAMP"])
        if not stop_begun <= stopped <= started <= listening:
            raise RuntimeError(f"the host's times of the last restart make no sense: {times}, listening {listening}")
        return (stopped - stop_begun + listening - started) / 1e6


@dataclass(frozen=True)
class Applied:
    """A run that ended: wall seconds of the whole command, its journal, what its last restart took the service."""

    seconds: float
    events: Sequence[Event]
    restart: float

    def at(self, kind: str) -> float:
        """When the last event of this kind was written, in seconds since the epoch."""
        return datetime.fromisoformat([event for event in self.events if event.kind == kind][-1].at).timestamp()

    @property
    def end(self) -> Mapping[str, Any]:
        """How the run was closed."""
        return self.events[-1].body

    @property
    def kept(self) -> bool:
        """Whether the change stayed."""
        return bool(self.end["outcome"] == "kept")

    @property
    def measuring(self) -> float:
        """Seconds in which the load generator itself ran, by its own clock; starting it is not in it."""
        bodies = [event.body for event in self.events if event.kind == "measure.outcome"]
        return sum(float(body["generator"]["elapsed"]) for body in bodies)


@contextmanager
def bench_desk() -> Iterator[BenchDesk]:
    """A booted host with a running service. Raises LabMissingError where this machine can have no lab."""
    install.ensure()
    root.root()
    root.engine()
    with Lab() as lab, tempfile.TemporaryDirectory(prefix="changectl-bench-") as name:
        service = LlamaService(lab.host("h1"))
        service.install()
        folder = Path(name)
        desk = Desk(folder / "project", folder / "home").lay_out([service])
        yield BenchDesk(service, folder, desk)


BIN = Path(sys.executable).parent
