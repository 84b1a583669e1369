"""A host that only calls: the load generator runs there, and meets the service of another fake host."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.workflow.fake_doors import FakeDoor
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import SERVICE, Stage

from changectl.core.ports import HostAddress

ADDRESS = "10.0.0.9"
REFUSED = {"i": 0, "level": "try", "stream": 0, "prompt": "p", "round": 0, "t_planned": 0, "chunks": 0,
           "cls": "connect_refused"}  # fmt: skip


@dataclass
class FakeCaller(FakeHost):
    """It has no service of its own that anything may be asked of."""

    serves: FakeHost | None = None
    reaches: bool = True
    cut: float = 0.0  # seconds for which its link is cut in a measurement
    hello: dict[str, Any] = field(default_factory=dict)  # what it says of itself otherwise

    def call_hello(self, args: Mapping[str, Any]) -> dict[str, Any]:
        return {**super().call_hello(args), **self.hello}

    def call_measure(self, args: Mapping[str, Any]) -> dict[str, Any]:
        assert self.serves is not None
        answer = self.serves.call_measure(args)
        if not self.reaches:
            answer["records"] = _packed(REFUSED)
        if self.cut:
            answer["records"] = _packed({**REFUSED, "cls": "connect_timeout"}, *_lines(answer["records"]))
        return {**answer, "summary": {**answer["summary"], "source": ADDRESS}, "silent": self.cut}


def _packed(*records: Mapping[str, Any]) -> str:
    return base64.b64encode(zlib.compress("\n".join(map(json.dumps, records)).encode())).decode()


def _lines(packed: str) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in zlib.decompress(base64.b64decode(packed)).splitlines()]


def with_caller(names: tuple[str, ...] = ("gpu1",)) -> tuple[Stage, FakeCaller]:
    """A stage whose service names another host as its caller."""
    stage = Stage(names, service_text=f"{SERVICE}caller: c1\n")
    caller = FakeCaller("c1", stage.world, serves=stage.host)
    stage.tools.inventory.others = [HostAddress("c1", {"ansible_host": ADDRESS})]  # type: ignore[attr-defined]
    stage.doors.hosts = {**stage.hosts, "c1": caller}
    return stage, caller


def doors_to(stage: Stage, name: str) -> list[FakeDoor]:
    return [door for door in stage.doors.opened if door.host.name == name]
