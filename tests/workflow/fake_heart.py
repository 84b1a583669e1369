"""Signs of life in memory: nothing beats, but a story can say that a lease was lost."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.workflow.world import World

from changectl.core.lease import Lease
from changectl.core.ports import HostAddress, Json


@dataclass
class FakeBeating:
    """One lease; it runs out by the world's clock from the moment when it was taken."""

    world: World
    lease: Lease
    since: float
    lost: str | None = None
    stopped: bool = False

    @property
    def left(self) -> float:
        return self.since + self.lease.seconds - self.world.seconds

    def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeHeart:
    """Fulfils core.ports.Heart."""

    world: World
    beatings: list[FakeBeating] = field(default_factory=list)

    def beat(self, host: HostAddress, lease: Lease, args: Json) -> FakeBeating:
        self.beatings.append(FakeBeating(self.world, lease, self.world.seconds))
        return self.beatings[-1]
