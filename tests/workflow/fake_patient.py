"""A host as a doctor meets it, in memory: a lease, a scratch file, and a dead-man that acts by the world's clock."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from tests.workflow.world import FakeClock, World

from changectl.core.errors import ChangectlError, ContactLost, HostCallError
from changectl.core.ports import Door, HostAddress, Json, PlayResult, Progress
from changectl.workflow.doctor_tools import Instruments

BOOTED = 1000.0  # seconds that the host is up when the story begins
FOLDER = {"path": "/s", "exists": True, "place": "/s", "attributes": "", "acl": "", "file_system": "ext4",
          "free": 10**10, "free_inodes": 10**6, "inodes": 10**6}  # fmt: skip
OTHER = {"run": "R-9", "owner": "kim@desk", "nonce": "theirs", "generation": 1, "deadline": 1e9}


@dataclass
class Patient:
    """The host, and what is wrong with it. It fulfils Doors and Playbooks for itself."""

    world: World = field(default_factory=World)
    lateness: float | None = 0.1  # seconds after the deadline; None: the dead-man is dead
    brings: str | None = None  # what comes back instead of the saved bytes
    outcome: str = "restored"
    arms: bool = True
    writes: bool = True
    restorable: bool = True
    forgets: bool = True
    uid: int = 0
    python_of_plays: str = "/usr/bin/python3"
    clock: float = 0.0  # seconds by which it is ahead
    play_fails: ChangectlError | None = None
    on_open: Callable[[Patient, HostAddress], None] = lambda patient, host: None
    lease: dict[str, Any] | None = None
    armed: dict[str, Any] | None = None
    fired: dict[str, Any] | None = None
    generation: int | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    staged: dict[str, bytes] = field(default_factory=dict)
    saved: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[float, str, Mapping[str, Any]]] = field(default_factory=list)
    plays: list[Mapping[str, Any]] = field(default_factory=list)
    doors: int = 0

    # -- the ports ------------------------------------------------------------------------------------------------
    def open(self, host: HostAddress) -> Door:
        self.world.passing("open")
        self.on_open(self, host)
        self.doors += 1
        return _Door(self)

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        self.world.passing(f"play {play}")
        self.plays.append(arguments)
        if self.play_fails is not None:
            raise self.play_fails
        self._require(arguments["changectl_run"], arguments["changectl_generation"])
        answer: dict[str, Any] = {"changed": True}
        if self.arms:
            self.armed = {"run": arguments["changectl_run"], **arguments["changectl_arm"]}
            answer["arm"] = {"armed": True, "keeper": "systemd", "reboot_safe": True, "why": ""}
        for write in arguments["changectl_writes"] if self.writes else ():
            assert hashlib.sha256(self.files[write["path"]]).hexdigest() == write["expect"]
            self.files[write["path"]] = self.staged[write["staged"]]
        return PlayResult((answer,))

    def instruments(self, **other: Any) -> Instruments:
        count = iter(range(1, 99))
        ports: dict[str, Any] = {
            "doors": self, "playbooks": self, "clock": FakeClock(self.world), "new_name": lambda: "1",
            "new_nonce": lambda: f"n{next(count)}", "stop": lambda: None, "tell": lambda text: None,
            "clean": lambda text: text, "actor": "kim@desk", **other,
        }  # fmt: skip
        return Instruments(**ports)

    # -- the dead-man ---------------------------------------------------------------------------------------------
    @property
    def now(self) -> float:
        return BOOTED + self.world.seconds

    def wake(self) -> None:
        """The dead-man does what it would have done by now."""
        if self.armed is None or self.lease is None or self.lateness is None or self.fired is not None:
            return
        acts = self.lease["deadline"] + self.lateness
        if self.now < acts:
            return
        for path, data in self.saved.items():
            self.files[path] = data if self.brings is None else self.brings.encode()
        at = datetime(2026, 1, 1, tzinfo=UTC)
        self.fired = {"by": "deadman", "boot_seconds": acts, "state": "done", "outcome": self.outcome,
                      "at": at.isoformat(), "ended_at": (at + timedelta(seconds=0.25)).isoformat()}  # fmt: skip
        self.generation = (self.generation or 0) + 1
        self.lease = {**self.lease, "deadline": 0.0, "generation": self.generation}
        self.armed = None

    def _live(self) -> bool:
        return self.lease is not None and self.lease["deadline"] > self.now

    def _require(self, run: str, generation: int) -> None:
        if self.lease is None or not self._live() or (self.lease["run"], self.lease["generation"]) != (run, generation):
            raise HostCallError("no lease", reason="no_lease")

    # -- calls ----------------------------------------------------------------------------------------------------
    def call_hello(self, args: Json) -> dict[str, Any]:
        wall = datetime(2026, 1, 1, tzinfo=UTC).timestamp() + self.world.seconds + self.clock
        return {"python": "3.11.2", "executable": "/usr/bin/python3", "uid": self.uid, "user": "ops", "wall_time": wall}

    def call_doctor(self, args: Json) -> dict[str, Any]:
        keeper = None if self.armed is None else {"executable": self.python_of_plays}
        if args.get("only") == ["keeper"]:
            return {"keeper": keeper}
        return {"folders": [FOLDER], "temporary": {"path": "/tmp"}, "selinux": None,
                "systemd": {"state": "running", "reload": [], "transient": ""}}  # fmt: skip

    def call_leftovers(self, args: Json) -> dict[str, Any]:
        own = {"what": "run", "place": "/s/runs/doctor-1", "run": "doctor-1", "how": "forget", "removable": True}
        return {"items": [own] if self.files else []}

    def call_standing(self, args: Json) -> dict[str, Any]:
        lease = None
        if self.lease is not None:
            lease = {**self.lease, "live": self._live(), "left": max(0.0, self.lease["deadline"] - self.now)}
        return {"lease": lease, "armed": self.armed, "fired": self.fired, "generation": self.generation,
                "boot_seconds": self.now, "keeper_running": self.lateness is not None}  # fmt: skip

    def call_lease(self, args: Json) -> dict[str, Any]:
        if self.lease is not None and self.lease["run"] != args["run"] and self._live():
            raise HostCallError(f"held by run {self.lease['run']} of {self.lease['owner']}", reason="held")
        told = ("run", "nonce", "generation", "owner", "seconds")
        self.lease = {**{name: args[name] for name in told}, "deadline": self.now + args["seconds"]}
        return {"left": args["seconds"]}

    def call_release(self, args: Json) -> dict[str, Any]:
        mine = self.lease is not None and self.lease["nonce"] == args["nonce"]
        if mine:
            assert self.armed is None
            self.lease = None
        return {"released": mine}

    def call_stage(self, args: Json) -> dict[str, Any]:
        self._require(args["run"], args["generation"])
        self.generation = args["generation"]
        data = base64.b64decode(args["content"])
        path = f"/s/runs/{args['run']}/staged/{args['sha256']}"
        self.staged[args["sha256"]] = self.files[path] = data
        return {"path": path}

    def call_capture(self, args: Json) -> dict[str, Any]:
        self._require(args["run"], args["generation"])
        self.saved = {path: self.files[path] for path in args["files"]}
        return {"restorable": self.restorable, "problems": [] if self.restorable else ["owner differs"]}

    def call_verify(self, args: Json) -> dict[str, Any]:
        return {"files": {path: {"equal": self.files[path] == data} for path, data in self.saved.items()}}

    def call_disarm(self, args: Json) -> dict[str, Any]:
        assert self.lease is not None
        assert (self.lease["nonce"], args["outcome"]) == (args["nonce"], "accepted")
        self.armed = None
        return {"disarmed": True}

    def call_forget(self, args: Json) -> dict[str, Any]:
        if args["generation"] < (self.generation or 0) or self.armed is not None:
            raise HostCallError("somebody else's, or armed", reason="armed")
        if self.forgets:
            self.files.clear()
        self.generation = self.fired = None
        return {"removed": []}


@dataclass
class _Door:
    """Fulfils Door; a closed one is not used again."""

    patient: Patient
    closed: bool = False

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        if self.closed:
            raise ContactLost("this door is closed")
        patient = self.patient
        patient.world.passing(f"door {name}")
        patient.wake()
        patient.asked.append((patient.world.seconds, name, args))
        answer: dict[str, Any] = getattr(patient, f"call_{name}")(args)
        return answer

    def close(self) -> None:
        self.closed = True


def quiet(asked: Sequence[tuple[float, str, Mapping[str, Any]]]) -> float:
    """The longest time, in seconds, in which nobody asked anything."""
    times = [moment for moment, _, _ in asked]
    return max(after - before for before, after in pairwise(times))
