"""An nginx in memory: one file that says who gets requests, and the leases, switches and answers of the real one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.workflow.fake_host import FakeHost, sha
from tests.workflow.fake_keeper import FakeKeeper
from tests.workflow.world import World

from changectl.core.errors import HostCallError

FILE = "/etc/nginx/chat.conf"


def _member(name: str) -> str:
    return name if ":" in name else f"{name}:8080"


@dataclass
class FakeBalancer:
    """One balancer before fake hosts; members are `NAME:8080`, or NAME where that is HOST:PORT itself."""

    name: str
    world: World
    hosts: Mapping[str, FakeHost]
    file: bytes = b""
    keeper: FakeKeeper = field(default_factory=FakeKeeper)
    saved: dict[str, bytes] = field(default_factory=dict)
    staged: dict[str, bytes] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    upstreams: set[str] = field(default_factory=set)
    connections: list[int] = field(default_factory=list)  # of the next looks; then none
    pending: list[str] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)  # members that want a token on every page
    unreachable: set[str] = field(default_factory=set)  # members that this host gets no answer from
    metrics: dict[str, str] = field(default_factory=dict)  # member's name -> its counters
    writes: int = 0
    captured: dict[str, tuple[bytes, int]] = field(default_factory=dict)
    refuses: str = ""  # why nginx does not take what was written
    on_switch: Callable[[str], None] = lambda call: None

    def __post_init__(self) -> None:
        lines = "".join(f"  server {_member(name)} weight=2;\n" for name in self.hosts)
        self.file = f"upstream chat {{\n{lines}}}\n".encode()
        self.before = self.file

    def at(self, args: Mapping[str, Any]) -> FakeBalancer:
        """Whatever a call is about: there is one balancer here."""
        return self

    def out(self) -> list[str]:
        """The members that get no requests now."""
        lines = [line.split() for line in self.file.decode().splitlines() if "down;" in line]
        return [self._named(line[1]) for line in lines]

    def _named(self, member: str) -> str:
        return next(name for name in self.hosts if _member(name) == member)

    def lease_runs_out(self) -> None:
        """The dead-man puts back what is healthy."""
        for run in self.keeper.run_out():
            self.file = self.saved[run]
            self.generations[run] = self.generations.get(run, 0) + 1
            self.keeper.acted(run, self.generations[run])

    def call(self, name: str, args: Mapping[str, Any]) -> dict[str, Any]:
        self.upstreams.add(args["upstream"])
        answer: dict[str, Any] = getattr(self, f"call_{name}")(args)
        return json.loads(json.dumps(answer))  # type: ignore[no-any-return]

    def call_standing(self, args: Mapping[str, Any]) -> dict[str, Any]:
        seen = self.generations.get(args["run"])
        return {**self.keeper.standing(args["run"]), "generation": seen, "seen": seen or 0}

    def call_lease(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.lease(self.name, args, self.generations.get(args["run"], 0))

    def call_release(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.release(args)

    def call_disarm(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return self.keeper.disarm(self.name, args)

    def call_forget(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.keeper.require(self.name, args["run"], args["generation"])
        self.saved.pop(args["run"], None)
        return {"removed": [], "changed": True}

    def call_capture(self, args: Mapping[str, Any]) -> dict[str, Any]:
        state = (self.file, self.writes)  # as the real one, to which a file that was written anew is another one
        if self.saved.setdefault(args["run"], self.file) and self.captured.setdefault(args["run"], state) != state:
            raise HostCallError(f"{self.name}: a snapshot of another state", reason="already_captured")
        return {"restorable": True}

    def call_stage(self, args: Mapping[str, Any]) -> dict[str, Any]:
        self.staged[args["sha256"]] = base64.b64decode(args["content"])
        return {"path": "/staged", "changed": True}

    def call_balancer(self, args: Mapping[str, Any]) -> dict[str, Any]:
        content = base64.b64encode(self.file).decode()
        return {"file": {"content": content, "sha256": sha(self.file), "resolved": args["file"]}, "reads": True,
                "problem": "", "pending": self.pending, "master": 7, "workers": [8]}  # fmt: skip

    def call_connections(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {"count": self.connections.pop(0) if self.connections else 0}

    def call_probe(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {request["name"]: self._page(request["url"]) for request in args["requests"]}

    def _page(self, url: str) -> dict[str, Any]:
        name, path = self._named(urlsplit(url).netloc), urlsplit(url).path
        if name in self.unreachable:
            return {"status": None, "error": "timed out"}
        if name in self.forbidden and path == "/health":
            return {"status": 401, "body": ""}
        if path == "/metrics":
            idle = "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"
            return {"status": 200, "body": self.metrics.get(name, idle)}
        return self.hosts[name].call_probe({"requests": [{"name": "page", "url": url}]})["page"]  # type: ignore[no-any-return]

    def play(self, play: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        assert play == "traffic"
        run, generation = given["changectl_run"], given["changectl_generation"]
        if self.generations.get(run, 0) > generation:
            raise HostCallError(f"{self.name}: run {run} was taken over", reason="stale_generation")
        self.generations[run] = generation
        self.keeper.require(self.name, run, generation)
        armed = self.keeper.arm(self.name, run, given.get("changectl_arm"))
        self.on_switch(given["changectl_call"])
        self.writes += 1
        if given["changectl_call"] == "take_out":
            self._take_out(run, given["changectl_write"])
        else:
            self._put_back(run, given)
        return [{"changed": True, **({} if armed is None else {"arm": armed})}]

    def _take_out(self, run: str, write: Mapping[str, Any]) -> None:
        assert run in self.keeper.armed
        assert write["expect"] == sha(self.file)
        if self.refuses:
            raise HostCallError(f"{self.name}: {self.refuses}", reason="nginx_refuses", details={"back": ""})
        self.file = self.staged[write["staged"]]

    def _put_back(self, run: str, given: Mapping[str, Any]) -> None:
        member = given["changectl_traffic"]["member"]
        health = [self._page(request["url"])["status"] for request in given["changectl_traffic"]["health"]]
        if health != [200] * len(health):
            raise HostCallError(f"{member} stays out of service", reason="member_sick")
        write = given.get("changectl_write")
        if write:
            assert write["expect"] == sha(self.file)
            self.file = self.staged[write["staged"]]
        elif self.file != self.saved[run] and self.file not in self.staged.values():
            raise HostCallError(f"{self.name}: somebody changed the very line", reason="changed_by_other")
        else:
            self.file = self.saved[run]
