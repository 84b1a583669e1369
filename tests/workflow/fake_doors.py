"""The two ways to a fake host: the door for looking and staging, the plays for everything that changes the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.workflow.fake_host import FakeHost
from tests.workflow.fake_shared import SharedHost

from changectl.core.errors import ContactLost
from changectl.core.ports import HostAddress, Json, PlayResult, Progress


@dataclass
class FakeDoor:
    """Fulfils core.ports.Door."""

    host: FakeHost | SharedHost
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
        instance = self.host.at(args)
        self.host.world.passing(f"door {instance.name} {name}")
        return instance.call(name, args)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeDoors:
    """Fulfils core.ports.Doors."""

    hosts: Mapping[str, FakeHost | SharedHost]
    opened: list[FakeDoor] = field(default_factory=list)

    def open(self, host: HostAddress) -> FakeDoor:
        if host.name not in self.hosts:
            raise ContactLost(f"{host.name}: no such host")
        self.hosts[host.name].world.passing(f"open {host.name}")
        self.opened.append(FakeDoor(self.hosts[host.name]))
        return self.opened[-1]


@dataclass
class FakePlaybooks:
    """Fulfils core.ports.Playbooks."""

    hosts: Mapping[str, FakeHost | SharedHost]
    arguments: list[Mapping[str, Any]] = field(default_factory=list)

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        self.arguments.append(arguments)
        instance = self.hosts[host.name].at(arguments)
        instance.world.passing(f"play {instance.name} {play}")
        return PlayResult(instance.play(play, arguments))
