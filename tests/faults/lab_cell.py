"""One cell on a host of the lab: a real systemd, a real sshd, a link that can be cut, power that can be cut."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.bench import ANY_FIGURES, NO_FIGURES, REQUESTS, STREAMS
from tests.faults.cells import Cell
from tests.faults.checker import Expected, Judged, Reach, judge
from tests.faults.lab_strikes import LabStriker
from tests.faults.local_cell import ACTS_WITHIN
from tests.faults.strikes import lines, ordered
from tests.faults.told import brief, read_journal
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

LEASE = 6.0  # seconds: two hosts and their controllers share two cores
STOP_AND_LOAD = 5.0
BOOT = 30.0  # seconds; a power cut comes with one
PATIENCE = 25.0
RUN_TIMEOUT = 180.0
THREADS_HTTP, CACHE_TYPE = "LLAMA_ARG_THREADS_HTTP", "LLAMA_ARG_CACHE_TYPE_K"
OLD = {THREADS_HTTP: "4", CACHE_TYPE: "f16"}
CHANGES = {"kept": (THREADS_HTTP, "2"), "reverted": (THREADS_HTTP, "2"), "dying": (CACHE_TYPE, "q8_0")}
STARTS = "/srv/starts"
OURS = ("changectl-deadman.service", "changectl-boot.service")
_CLEAN = "systemctl stop {0} {1}; systemctl disable {0} {1}; rm -f /etc/systemd/system/{1} /etc/systemd/system/{0}"


@dataclass
class LabBench:
    """One host with its service, and a project for each cell."""

    host: LabHost
    folder: Path
    service: LlamaService = field(init=False)

    def __post_init__(self) -> None:
        count = f"ExecStartPre=+/bin/sh -c 'echo started >> {STARTS}'"
        flags = {"--ctx-size": "2048", "--parallel": "2", "--threads": "1"}
        self.service = LlamaService(self.host, flags=flags, environment=OLD, unit_lines=[count])

    def fresh(self, name: str) -> Desk:
        """The service as it was at the beginning, nothing of ours on the host, and an empty project."""
        if not self.host.running:
            self.host.boot()
        self.host.restore_link()
        self.host.run(["sh", "-c", _CLEAN.format(*OURS)], check=False)
        self.host.run(["systemctl", "start", "ssh"])
        self.host.wait_ssh()
        self.service.uninstall()
        self.host.run(["rm", "-f", STARTS])
        self.service.install()
        # Short: below a home lie Ansible's sockets, whose paths have room for 108 characters.
        folder = self.folder / _sha256(name)[:8]
        shutil.rmtree(folder, ignore_errors=True)
        desk = Desk(folder / "project", folder / "home")
        more = f"lease: {LEASE:g}s\n"
        return desk.lay_out([self.service], levels=f"{{busy: {STREAMS} streams}}", more=more)

    def plan(self, desk: Desk, plan: str) -> str:
        """Write one of the plans."""
        name, new = CHANGES[plan]
        change = f'{{environment: {{name: {name}, from: "{OLD[name]}", to: "{new}"}}}}'
        figures = ANY_FIGURES if plan == "kept" else NO_FIGURES
        policy = "keep" if plan == "kept" else "revert"
        return desk.plan(
            change, requests=REQUESTS, more=f"    accept: {figures}\n    on_inconclusive: {policy}\n"
        )  # fmt: skip

    def reach(self) -> Reach:
        """How the judge looks at the host: from outside, by its namespaces, whether or not there is a network."""
        question = {
            "files": [self.service.env_file, self.service.unit_file],
            "needles": ["--alias", self.service.name, "--port", str(self.service.port)],
            "environ": list(OLD),
            "endpoint": f"http://127.0.0.1:{self.service.port}",
            "starts": STARTS,
            "states": ["/var/lib/changectl"],
        }
        spaces = ("--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd=/")
        return Reach(question, ("nsenter", f"--target={self.host.leader}", *spaces))

    def expected(self, plan: str) -> Expected:
        """The two configurations that may be in force."""
        saved = self.reach().look()
        name, new = CHANGES[plan]
        text = self.host.read_file(self.service.env_target).decode().replace(f"{name}={OLD[name]}", f"{name}={new}")
        return Expected(saved, {self.service.env_file: _sha256(text)}, saved["processes"][0]["argv"], {name: new})


@dataclass
class LabCell:
    """A cell on one host."""

    bench: LabBench
    cell: Cell
    notes: list[str] = field(default_factory=list)

    def carry_out(self) -> dict[str, Any]:
        """Do all of it; what is told is the table's row."""
        desk = self.bench.fresh(self.cell.name)
        plan = self.bench.plan(desk, self.cell.plan)
        database = desk.folder / ".changectl" / "changectl.db"
        expected = self.bench.expected(self.cell.plan)
        striker = LabStriker(self.cell.fault, self.bench.host, desk.folder.parent / "trace")
        ended = self._disturbed(desk, plan, striker)
        struck = bool(lines(striker.trace)) and striker.seen and (self.cell.fault != "kill" or ended == -signal.SIGKILL)
        if self.cell.fault == "crash":
            struck = int(self.bench.reach().look()["starts"] or 0) > int(expected.saved["starts"]) + 1
        if ended < 0 or striker.lasts:
            time.sleep(LEASE + ACTS_WITHIN)
        striker.later()
        kinds = read_journal(database).kinds  # before anybody adds to them
        first = self._settled(expected, database, ended, PATIENCE if ended < 0 or striker.lasts else STOP_AND_LOAD)
        striker.mended()
        recovered = self._recover(desk)
        second = self._judged(expected, database, ended, final=recovered is not None)
        return {"struck": struck, "exit": ended, "first": [first.word, list(first.reasons)],
                "second": [second.word, list(second.reasons)], "recover": recovered, "notes": self.notes,
                "kinds": list(kinds)}  # fmt: skip

    def _disturbed(self, desk: Desk, plan: str, striker: LabStriker) -> int:
        do = ordered(self.cell.fault)
        point = {key: value for key, value in asdict(self.cell.point).items() if key != "state"}
        faults = [] if do is None else [{**point, "do": do}]
        orders = striker.trace.with_name("orders.json")
        orders.write_text(json.dumps({"trace": str(striker.trace), "faults": faults}))
        words = ["apply", "-i", "hosts.yml", "--json", plan]
        with striker.trace.with_name("said").open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("driver.py")), str(orders), "--", *words],
                cwd=desk.folder, env=environment(desk), stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
            deadline = time.monotonic() + RUN_TIMEOUT
            while process.poll() is None:
                striker.watch(process)
                if time.monotonic() > deadline:
                    process.kill()
                    self.notes.append("the command did not end in time and was killed")
                time.sleep(0.02)
        striker.finish()
        return process.returncode

    def _settled(self, expected: Expected, database: Path, ended: int, seconds: float) -> Judged:
        deadline = time.monotonic() + seconds
        while True:
            found = self._judged(expected, database, ended, final=False)
            if found.sound or time.monotonic() > deadline:
                return found
            time.sleep(0.3)

    def _judged(self, expected: Expected, database: Path, ended: int, *, final: bool) -> Judged:
        return judge(expected, self.bench.reach().look(), read_journal(database), ended, final=final)

    def _recover(self, desk: Desk) -> int | None:
        if _changectl(desk, "recover", "--help").returncode != 0:
            self.notes.append("no command `recover` yet")
            return None
        done = _changectl(desk, "recover", "-i", "hosts.yml", "--json")
        if done.returncode != 0:
            self.notes.append(f"recover ended with {done.returncode}: {brief(done.stdout, done.stderr)}")
        return done.returncode


def environment(desk: Desk) -> dict[str, str]:
    """A clean one, with the sources of this program where they are not installed."""
    path = os.environ.get("PYTHONPATH", "")
    return {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(desk.home),
            "LC_ALL": "C.UTF-8", **({"PYTHONPATH": path} if path else {})}  # fmt: skip


def events_of(bench: LabBench, plan: str) -> tuple[int, Sequence[str], str]:
    """Apply a plan undisturbed; its exit code, its events, what it said."""
    desk = bench.fresh(f"dry-{plan}")
    done = _changectl(desk, "apply", "-i", "hosts.yml", "--json", bench.plan(desk, plan))
    return done.returncode, read_journal(desk.folder / ".changectl" / "changectl.db").kinds, done.stderr + done.stdout


def _changectl(desk: Desk, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "changectl.cli.main", *words], cwd=desk.folder, env=environment(desk),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_TIMEOUT, check=False,
    )  # fmt: skip


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
