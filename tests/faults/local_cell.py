"""One cell over the local connection: apply, fault, nobody touches the host, the judge, `recover`, the judge again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults import strikes
from tests.faults.bench import LEASE, LOAD, LocalBench
from tests.faults.checker import Expected, Judged, Word, judge
from tests.faults.told import brief, read_journal

Mount = Callable[..., None]
RUN_TIMEOUT = 180.0  # seconds for one whole apply with its way back; a hanging engine is stopped slowly
ACTS_WITHIN = 1.0  # seconds after its deadline in which the dead-man has to act
STOP = 2.0  # seconds for a stop
NEEDS_A_PERSON = 6  # exit code
PATIENCE = 15.0  # seconds beyond all of it before a cell is judged as it stands
SMALL_DISK = "96m"  # more than a run demands


@dataclass
class LocalCell:
    """A cell in its own world."""

    bench: LocalBench
    plan: str
    fault: str
    point: Mapping[str, Any]
    trace: Path
    notes: list[str] = field(default_factory=list)

    def carry_out(self) -> dict[str, Any]:
        """Do all of it; what is told is the table's row."""
        expected = self.bench.expected(self.plan)
        ended = self._disturbed()
        struck = strikes.lines(self.trace)
        if self.fault == "crash" and self._starts() > expected.saved["starts"]:
            struck = [{"do": "crash"}]  # the engine itself is the fault: it was started, and ended
        first = self._first(expected, ended)
        kinds = read_journal(self.bench.database).kinds  # before anybody adds to them
        self._striker.mended()  # as a person does before asking for anything more
        recovered = self._recover()
        if self.fault == "hang" and ended == NEEDS_A_PERSON:
            self._taken_back()
        second = self._judged(expected, ended, final=recovered is not None)
        return {"struck": bool(struck) and (self.fault != "kill" or ended == -signal.SIGKILL), "exit": ended,
                "first": [first.word, list(first.reasons)], "second": [second.word, list(second.reasons)],
                "recover": recovered, "notes": self.notes, "kinds": list(kinds),
                "records": self.bench.reach().look()["records"]}  # fmt: skip

    def _disturbed(self) -> int:
        """Apply the plan with the fault; returns the command's exit status as Popen tells it."""
        orders = self.trace.with_name("orders.json")
        do = strikes.ordered(self.fault)
        faults = [] if do is None else [{**self.point, "do": do}]
        orders.write_text(json.dumps({"trace": str(self.trace), "faults": faults}))
        command = self.bench.command(*self.bench.apply_words(self.plan), faults=orders)
        with self.trace.with_name("out").open("wb") as out, self.trace.with_name("err").open("wb") as err:
            process = subprocess.Popen(
                command, cwd=self.bench.project, env=dict(self.bench.environment()), stdin=subprocess.DEVNULL,
                stdout=out, stderr=err, start_new_session=True,
            )  # fmt: skip
            striker = strikes.Striker(self.fault, self.bench, self.trace, process)
            deadline = time.monotonic() + RUN_TIMEOUT
            while process.poll() is None:
                striker.watch()
                if time.monotonic() > deadline:
                    process.kill()
                    self.notes.append("the command did not end in time and was killed")
                time.sleep(0.02)
        self._striker = striker
        return process.returncode

    def _first(self, expected: Expected, ended: int) -> Judged:
        """Nobody touches the host: what stands when the lease is surely over, and a stop and a load have passed."""
        if ended < 0:
            time.sleep(LEASE + ACTS_WITHIN)
        self._striker.later()
        found = self._settled(expected, ended, STOP + LOAD + (PATIENCE if ended < 0 else 0.0))
        if not found.sound and self._striker.mended():
            found = self._settled(expected, ended, PATIENCE)
        return found

    def _settled(self, expected: Expected, ended: int, seconds: float) -> Judged:
        deadline = time.monotonic() + seconds
        while True:
            found = self._judged(expected, ended, final=False)
            if found.sound or time.monotonic() > deadline:
                return found
            time.sleep(0.2)

    def _judged(self, expected: Expected, ended: int, *, final: bool) -> Judged:
        return judge(expected, self.bench.reach().look(), read_journal(self.bench.database), ended, final=final)

    def _recover(self) -> int | None:
        """Run `changectl recover`; None: this program has no such command yet."""
        if self.bench.run("recover", "--help").returncode != 0:
            self.notes.append("no command `recover` yet")
            return None
        done = self.bench.run("recover", "-i", "hosts.yml", "--json")
        if done.returncode != 0:
            self.notes.append(f"recover ended with {done.returncode}: {brief(done.stdout, done.stderr)}")
        return done.returncode

    def _taken_back(self) -> None:
        """An engine that hung on the saved configuration itself: once that is mended, what the screen says is done."""
        run = read_journal(self.bench.database).run
        done = self.bench.run("revert", str(run), "-i", "hosts.yml", "--reason", "the engine hung", "--json")
        if done.returncode != 0:
            self.notes.append(f"revert ended with {done.returncode}: {brief(done.stdout, done.stderr)}")

    def _starts(self) -> int:
        return int(self.bench.reach().look()["starts"] or 0)


def carry_out(order: Mapping[str, Any], mount: Mount) -> dict[str, Any]:
    """Carry out the cell of an order; tried again when its point was never reached."""
    told: dict[str, Any] = {}
    for attempt in range(order["tries"]):
        folder = Path(order["folder"]) / f"try-{attempt}"
        bench = prepared(folder, order, mount)
        told = LocalCell(bench, order["plan"], order["fault"], order["point"], folder / "trace").carry_out()
        told["tries"] = attempt + 1
        if told["struck"] or told["first"][0] not in (Word.KEPT, Word.RESTORED):
            break
        strikes.end_engine(bench)
        shutil.rmtree("/var/lib/changectl", ignore_errors=True)  # the mount stays; what was in it goes
    return told


def prepared(folder: Path, order: Mapping[str, Any], mount: Mount) -> LocalBench:
    """A bench that serves; where the fault is a full disk, that folder is a small disk of its own."""
    bench = LocalBench(folder / "desk")
    small = order["fault"].removeprefix("full-") if str(order["fault"]).startswith("full-") else None
    for name in ("service", "state", "project"):
        place = bench.folder / name
        place.mkdir(parents=True, mode=0o700)
        if name == small:
            mount(place, SMALL_DISK, "0700")
    bench.lay_out().start()
    return bench


def dry_run(order: Mapping[str, Any], mount: Mount) -> dict[str, Any]:
    """Apply a plan undisturbed; tells its events, and how it ended."""
    folder = Path(order["folder"])
    bench = prepared(folder / "try-0", {**order, "fault": "none"}, mount)
    expected = bench.expected(order["plan"])
    begun = time.monotonic()
    done = bench.run(*bench.apply_words(order["plan"]), timeout=RUN_TIMEOUT)
    seconds = time.monotonic() - begun
    told = read_journal(bench.database)
    found = judge(expected, bench.reach().look(), told, done.returncode, final=True)
    return {"kinds": list(told.kinds), "exit": done.returncode, "seconds": seconds,
            "second": [found.word, list(found.reasons)], "out": done.stdout[-4000:], "err": done.stderr[-2000:],
            "pid": os.getpid()}  # fmt: skip
