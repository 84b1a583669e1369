"""A host in memory: files, a unit, a process, an engine with a scripted temper; plays and calls really change it."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.unit.engines.support import text
from tests.workflow import fake_load, fake_plays
from tests.workflow.fake_keeper import FakeKeeper
from tests.workflow.fake_load import Speed
from tests.workflow.fake_sampler import FakeSampler
from tests.workflow.world import EPOCH, World

from changectl.core.errors import HostCallError
from changectl.core.lease import whole
from changectl_host import part

DEFAULT = "/var/lib/changectl"  # the state folder that a host takes by itself

UNIT, ENV, MODEL = "/etc/systemd/system/chat.service", "/etc/chat.env", "/srv/m.gguf"
UNIT_TEXT = "[Service]\nEnvironmentFile=/etc/chat.env\nExecStart=/opt/llama-server --model /srv/m.gguf --parallel 4\n"
ENV_TEXT = "OMP_NUM_THREADS=1\n"
GIB = 1024**3
SHOW = {"StartLimitBurst": "9", "StartLimitIntervalUSec": "10s", "TimeoutStopUSec": "1min 30s", "Restart": "no",
        "StandardOutput": "journal"}  # fmt: skip


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass
class Process:
    pid: int
    argv: list[str]
    environ: dict[str, str]
    started: float


def calm(argv: list[str], streams: int) -> tuple[int, int]:
    """Milliseconds to the first token and per token: waiting grows when streams share too few slots."""
    slots = int(argv[argv.index("--parallel") + 1]) if "--parallel" in argv else 1
    return 20 * max(1, -(-streams // slots)), 5


@dataclass
class FakeHost:
    """Everything about one host, and what tests want to go wrong there."""

    name: str
    world: World
    files: dict[str, bytes] = field(default_factory=lambda: {UNIT: UNIT_TEXT.encode(), ENV: ENV_TEXT.encode()})
    model: dict[str, tuple[int, str]] = field(default_factory=lambda: {"m.gguf": (100, "aa")})
    process: Process | None = None
    log: list[str] = field(default_factory=list)
    saved: dict[str, dict[str, bytes]] = field(default_factory=dict)
    kept_in: dict[str, str] = field(default_factory=dict)  # run folder -> state folder
    written: dict[str, set[str]] = field(default_factory=dict)  # by run folder
    loads: Callable[[float], dict[str, Any]] = lambda seconds: {}  # what it reads and uses, by seconds since its start
    wrote: dict[tuple[str, str], bytes] = field(default_factory=dict)  # path -> what a run wrote there last
    staged: dict[str, bytes] = field(default_factory=dict)
    tokens: int = 0
    starts: int = 0
    born: int = 0  # processes of the service so far
    log_end: int = 0  # lines before the last start
    exec_start: str = ""  # as systemctl shows the unit's command
    stale: bool = False  # a file was written since the process started
    load_seconds: float = 1.0
    requests: int = 24
    generates: float = 0.0  # share of the tokens of a load that its own counter shows
    not_taken: int = 0  # requests of a load that nobody takes where they are sent
    sent_to: list[str] = field(default_factory=list)  # where loads were sent
    salts: list[str] = field(default_factory=list)  # of those loads
    ways: list[float | None] = field(default_factory=list)  # by how much they were longer; None: the straight one
    shows: float = 1.0  # which share of that is in what is measured
    sent_levels: list[list[dict[str, Any]]] = field(default_factory=list)  # of those loads, as the jobs say them
    precise_after: float | None = None  # seconds after which a level is over that may end before its time
    late: int = 0  # loads in which the generator itself will be late
    inexact: list[float | None] = field(default_factory=list)  # seconds that self-tests are off; None: silent
    drag: float = 1.0  # how many times the time of its schedule the load generator takes for an open level
    restorable: bool = True
    kernel: str | None = "6.1"
    cpus: dict[str, Any] = field(default_factory=lambda: {"model": "EPYC", "count": 2, "usable": 2})
    boot: str = "b"
    facts: dict[str, Any] = field(default_factory=dict)  # what the host says of the process otherwise
    counters: dict[str, int] = field(default_factory=lambda: {"oom_kill": 3, "pswpin": 70})
    kernel_log: list[str] = field(default_factory=list)
    memory_events: dict[str, int] | None = None
    read_only: tuple[str, ...] = ()  # paths on a read-only file system
    prepares: float = 0.0  # seconds of ExecStartPre=
    waits_to_restart: bool = False  # systemd's auto-restart, between two starts
    speed: Callable[[list[str], int], tuple[int, int]] = calm
    answers: Callable[[list[str], str], str] = lambda argv, prompt: "once upon a time"  # to quality prompts
    refuses: Callable[[list[str]], str | None] = lambda argv: None  # the log line of an engine that does not start
    reported: Callable[[list[str]], dict[str, Any]] = lambda argv: {}  # what /props says otherwise
    metrics: Callable[[FakeHost], str] = lambda host: f"llamacpp:tokens_predicted_total {host.tokens}\n"
    on_start: Callable[[FakeHost], None] = lambda host: None
    on_call: Callable[[FakeHost, str], None] = lambda host, call: None
    on_stop: Callable[[FakeHost], None] = lambda host: None
    generations: dict[str, int] = field(default_factory=dict)
    keeper: FakeKeeper = field(default_factory=FakeKeeper)
    sampler: FakeSampler = field(default_factory=FakeSampler)
    unit: str = "chat.service"
    env: str = ENV
    port: int = 8080

    def __post_init__(self) -> None:
        self.start()
        self.starts = 0
        if self.process is not None:
            self.process.started = -3600.0

    def at(self, args: Mapping[str, Any]) -> FakeHost:
        """The instance that a call or a play is about: the only one here."""
        return self

    @property
    def instances(self) -> list[FakeHost]:
        return [self]

    @property
    def unit_file(self) -> str:
        return f"/etc/systemd/system/{self.unit}"

    # -- the service ----------------------------------------------------------------------------------------------
    def start(self) -> None:
        self.starts, self.stale = self.starts + 1, False
        self.log_end = len(self.log)
        lines = self.files[self.unit_file].decode().splitlines()
        argv = shlex.split(next(line for line in lines if line.startswith("ExecStart=")).partition("=")[2])
        pairs = [line.partition("=") for line in self.files[self.env].decode().splitlines() if "=" in line]
        environ = {name: value for name, _, value in pairs}
        failure = self.refuses(argv)
        if failure is not None:
            self.log.append(failure)
            self.process = None
            return
        self.born += 1
        self.process = Process(100 + self.born, argv, environ, self.world.seconds + self.prepares)
        self.on_start(self)

    def stop(self) -> None:
        self.process = None
        self.on_stop(self)

    def restart(self) -> None:
        self.stop()
        self.start()

    def lease_runs_out(self) -> None:
        """Nobody gave a sign of life: the dead-man brings the saved configuration back, as the real one does."""
        for run in (run for run in self.keeper.run_out() if run in self.saved):
            only = self.keeper.armed[run]["only"]
            fake_plays.bring_back(self, run, only)
            self.generations[run] += 1
            self.keeper.acted(run, self.generations[run])

    def digests(self) -> dict[str, str]:
        return {path: sha(data) for path, data in self.files.items()}

    def _same_place(self, run: str | None, state_dir: str | None) -> None:
        """What a run saved lies in the state folder of that time; in another one nobody knows the run."""
        if run in self.saved and (state_dir or DEFAULT) != self.kept_in[run]:
            raise HostCallError(f"{self.name}: run {run} has no snapshot in {state_dir}", reason="not_captured")

    # -- calls ----------------------------------------------------------------------------------------------------
    def call(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        self.on_call(self, name)
        self._same_place(args.get("run"), args.get("state_dir"))
        answer: dict[str, Any] = getattr(self, f"call_{name}")(args)
        return json.loads(json.dumps(answer))  # type: ignore[no-any-return]

    def call_hello(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "python": "3.11.2",
            "executable": "/usr/bin/python3",
            "kubernetes": False,
            "systemd": True,
            "boot_id": self.boot,
            "hostname": self.name,
        }

    def call_host(self, args: Mapping[str, Any]) -> dict[str, Any]:
        disks = {path: {"free": 10 * GIB, "read_only": path in self.read_only} for path in args["paths"]}
        return {"kernel": self.kernel, "machine": "x86_64", "counters": self.counters, "kernel_log": self.kernel_log,
                "cpus": self.cpus, "disks": disks, "gpu": {"present": False},
                "memory": {"total": 16 * GIB, "available": 8 * GIB}}  # fmt: skip

    def call_inspect(self, args: Mapping[str, Any]) -> dict[str, Any]:
        process = self.process
        manager = {"unit": self.unit, "show": SHOW, "files": [self.unit_file], "need_daemon_reload": False,
                   "env_files": [{"path": self.env, "optional": False}], "exec_start": [self.exec_start]}  # fmt: skip
        facts = None if process is None else {
            "pid": process.pid, "start_ticks": process.pid, "started_at": EPOCH + process.started,
            "argv": process.argv, "environ": process.environ, "tree": [process.pid], "listens": [self.port],
            "limits": {"Max open files": ["1024", "4096"]}, "uid": 990, "gids": [990],
            "program": [9, 9, 9], "exe": "/opt/llama-server", "venv": "", **self.facts,
        }  # fmt: skip
        files = {
            path: {"exists": True, "sha256": sha(data), "content": base64.b64encode(data).decode(), "size": len(data),
                   "mtime_ns": int((EPOCH - 3600) * 1e9), "readable_by_service": True, "immutable": False}
            for path, data in self.files.items()
        }  # fmt: skip
        owner = None if process is None else {"pid": process.pid}
        return {"manager": manager, "process": facts, "files": files, "port_owner": owner}

    def call_model(self, args: Mapping[str, Any]) -> dict[str, Any]:
        files = [{"path": path, "size": size, "mtime_ns": int((EPOCH - 86400) * 1e9), "sha256": digest,
                  "header": "gguf"} for path, (size, digest) in self.model.items()]  # fmt: skip
        return {"files": files, "problems": [], "total_bytes": 100, "readable_by": {"uid": 1, "all": True, "not": []}}

    def call_status(self, args: Mapping[str, Any]) -> dict[str, Any]:
        process, active, sub = self.process, "active", "running"
        if process is None:
            active, sub = ("activating", "auto-restart") if self.waits_to_restart else ("failed", "failed")
        elif self.world.seconds < process.started:
            process, active, sub = None, "activating", "start-pre"
        facts = None if process is None else {"pid": process.pid, "start_ticks": process.pid,
                                              "started_at": EPOCH + process.started,
                                              **self.loads(self.world.seconds - process.started)}  # fmt: skip
        return {"active": active, "sub": sub, "restarts": 0, "process": facts, "memory_events": self.memory_events,
                "log": self.log[int(args.get("cursor") or 0) :], "cursor": str(len(self.log)),
                "now": EPOCH + self.world.seconds, "result": "exit-code" if process is None else "success"}  # fmt: skip

    def call_probe(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {request["name"]: self._page(urlsplit(request["url"]).path) for request in args["requests"]}

    def _page(self, path: str) -> dict[str, Any]:
        process = self.process
        if process is None:
            return {"status": None, "error": "connection refused"}
        if self.world.seconds < process.started + self.load_seconds:
            return {"status": 503, "body": '{"error": {"message": "Loading model"}}'}
        slots = int(process.argv[process.argv.index("--parallel") + 1]) if "--parallel" in process.argv else 1
        props = {"total_slots": slots, "model_path": MODEL, "build_info": "b10000", **self.reported(process.argv)}
        self.tokens += 2 if path.endswith("completions") else 0
        bodies: dict[str, Any] = {
            "/health": {"status": "ok"},
            "/v1/models": {"data": [{"id": "chat"}]},
            "/props": props,
            "/v1/completions": {"choices": [{"text": "a b"}], "usage": {"completion_tokens": 2}},
        }
        if path == "/metrics":
            return {"status": 200, "body": self.metrics(self)}
        return {"status": 200, "body": json.dumps(bodies[path])} if path in bodies else {"status": 501, "body": ""}

    def call_capture(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.saved[args["run"]] = dict(self.files)
        place = self.kept_in[args["run"]] = args.get("state_dir") or DEFAULT
        files = {path: {"sha256": sha(data)} for path, data in self.files.items()}
        problems = [] if self.restorable else ["owner differs"]
        return {"restorable": self.restorable, "problems": problems, "files": files, "digest": "d",
                "folder": f"{place}/runs/{args['run']}"}  # fmt: skip

    def call_cleanup(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.staged.clear()
        return {"removed": [], "changed": True}

    def call_generation(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"generation": self.generations.get(args["run"])}

    def call_standing(self, args: Mapping[str, Any]) -> dict[str, Any]:
        run = args["run"]
        return {**self.keeper.standing(run), "generation": self.generations.get(run), "seen": self._seen(run),
                "touched": run in self.written}  # fmt: skip

    def _seen(self, run: str) -> int:
        """The highest generation of all folders of a run."""
        return max((number for name, number in self.generations.items() if whole(name) == whole(run)), default=0)

    def call_lease(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.lease(self.name, args, self._seen(args["run"]))

    def call_release(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.release(args)

    def call_disarm(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.disarm(self.name, args)

    def call_forget(self, args: Mapping[str, Any]) -> dict[str, Any]:
        fake_plays.fence(self, args["run"], args["generation"])
        self.saved.pop(args["run"], None)
        return {"removed": [], "changed": True}

    def call_stage(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.staged[args["sha256"]] = base64.b64decode(args["content"])
        return {"path": "/staged", "changed": True}

    def call_verify(self, args: Mapping[str, Any]) -> dict[str, Any]:
        saved = self.saved[args["run"]]
        return {"files": {path: self._compared(args["run"], path, data) for path, data in saved.items()}}

    def _compared(self, run: str, path: str, saved: bytes) -> dict[str, Any]:
        present = self.files.get(path)
        if present == saved or present is None:
            return {"equal": present == saved, "differs": [] if present == saved else ["existence"]}
        wrote = self.wrote.get((run, path))
        taken_out = wrote is not None and part.standing(saved, wrote, present) == part.BACK
        return {"equal": False, "differs": ["bytes"], **({"part": "back"} if taken_out else {})}

    def call_evidence(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"log": self.log, "host": {}, "missing": {}}

    def call_unit_verify(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"before": [], "after": []}

    def call_help(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": text("llamacpp", "help.txt"), "exit_status": 0}

    def call_sample(self, args: Mapping[str, Any]) -> dict[str, Any]:
        process = None if self.process is None else (self.process.pid, self.process.argv)
        return self.sampler.call(args, self.world.seconds, process)

    def call_measure(self, args: Mapping[str, Any]) -> dict[str, Any]:
        assert self.process is not None
        argv, workload = self.process.argv, args["job"]["workload"]
        records = [
            fake_load.answered(record, workload, lambda prompt: self.answers(argv, prompt))
            for level in args["job"]["levels"]
            for record in self._records(level, self._speed(argv, level, args["job"]))
        ]
        self.world.seconds += 5
        self.sent_to.append(args["job"]["endpoint"])
        self.salts.append(args["job"]["salt"])
        self.sent_levels.append([dict(level) for level in args["job"]["levels"]])
        self.tokens += int(self.generates * sum(record["n_out"] for record in records))
        for record in records[: self.not_taken]:
            record.update(cls="connect_refused", n_out=None)
        for record in records if self.late else ():
            record["t_planned"] -= 300 * fake_load.MS
        self.late = max(0, self.late - 1)
        ended = {one["name"]: self.precise_after for one in args["job"]["levels"] if self._ends_early(one)}
        summary = {**self._summary(args["job"]), "ended": ended}
        data = "\n".join(json.dumps(record) for record in records).encode()
        return {"records": base64.b64encode(zlib.compress(data)).decode(), "summary": summary}

    def _speed(self, argv: list[str], level: Mapping[str, Any], job: Mapping[str, Any]) -> Speed:
        """The service's own, and what a longer way adds to it."""
        first, each = self.speed(argv, level.get("streams", 1))
        relay = job.get("relay")
        self.ways.append(None if relay is None else relay["delay"])
        return Speed(first + round(1000 * self.shows * (relay or {"delay": 0})["delay"]), each)

    def _summary(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """What the generator says of itself; of a self-test where it is asked for one."""
        if not job.get("self_test"):
            return {"source": "127.0.0.1"}
        off = self.inexact.pop(0) if self.inexact else 0.0002
        told = {"tries": [dict.fromkeys(job["self_test"], off)], "requests": 24, "seconds": 0.2}
        return {"source": "127.0.0.1", "self_test": told if off is not None else None}

    def _records(self, level: Mapping[str, Any], speed: Speed) -> list[dict[str, Any]]:
        if self.precise_after is None or not self._ends_early(level):
            return fake_load.records(level, speed, self.requests, self.drag)
        number = int(self.requests * self.precise_after / level["seconds"])
        return fake_load.records({**level, "seconds": self.precise_after}, speed, number, self.drag)

    def _ends_early(self, level: Mapping[str, Any]) -> bool:
        return self.precise_after is not None and "enough" in level

    # -- plays ----------------------------------------------------------------------------------------------------
    def play(self, play: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        self.on_call(self, play)
        self._same_place(given.get("changectl_run"), given.get("changectl_state_dir"))
        return fake_plays.play(self, play, given)
