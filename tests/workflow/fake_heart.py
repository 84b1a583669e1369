"""Signs of life in memory: every one comes through, unless a story says that a host is silent or a lease is lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.workflow.world import World

from changectl.core.lease import Lease
from changectl.core.ports import HostAddress, Json


@dataclass
class FakeBeating:
    """One lease; it runs out by the world's clock from the moment when its host fell silent."""

    world: World
    host: str
    lease: Lease
    silent: dict[str, float]
    lost: str | None = None
    stopped: bool = False

    @property
    def left(self) -> float:
        return self.lease.seconds - (self.world.seconds - self.silent.get(self.host, self.world.seconds))

    def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeHeart:
    """Fulfils core.ports.Heart."""

    world: World
    beatings: list[FakeBeating] = field(default_factory=list)
    silent: dict[str, float] = field(default_factory=dict)  # hosts, and since when nothing is heard of them

    def beat(self, host: HostAddress, lease: Lease, args: Json) -> FakeBeating:
        self.beatings.append(FakeBeating(self.world, host.name, lease, self.silent))
        return self.beatings[-1]
