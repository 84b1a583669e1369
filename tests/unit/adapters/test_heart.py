"""Signs of life: given until they are stopped, again after a lost one, and never for a lease that is ours no more."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from changectl.adapters.heart import Beating, HostHeart
from changectl.core.errors import ContactLost, HostCallError
from changectl.core.lease import Lease
from changectl.core.ports import HostAddress, Json, Progress

SHORT = Lease("R.1", 1, "n", 0.8)  # beats every 0.2 s


@dataclass
class ScriptedDoor:
    """Answers beat by beat as it is told; afterwards all is well."""

    script: list[BaseException | None]
    beats: list[float] = field(default_factory=list)
    closed: int = 0
    enough: threading.Event = field(default_factory=threading.Event)

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, object]:
        assert (name, args["nonce"]) == ("extend", "n")
        self.beats.append(time.monotonic())
        if len(self.beats) >= 4:
            self.enough.set()
        said = self.script.pop(0) if self.script else None
        if said is not None:
            raise said
        return {"left": 0.8}

    def close(self) -> None:
        self.closed += 1


def beat(door: ScriptedDoor, open_door: Callable[[HostAddress], ScriptedDoor] | None = None) -> Beating:
    return HostHeart(open_door or (lambda _: door)).beat(HostAddress("h"), SHORT, SHORT.as_args())


def test_a_lease_is_extended_well_before_it_is_over_until_it_is_stopped() -> None:
    door = ScriptedDoor([])
    beating = beat(door)
    assert door.enough.wait(5)
    beating.stop()
    seen = len(door.beats)
    time.sleep(0.5)

    assert len(door.beats) == seen
    assert door.closed == 1
    assert beating.lost is None
    assert 0 < beating.left <= 0.8


def test_a_lost_connection_is_opened_anew() -> None:
    door = ScriptedDoor([ContactLost("gone"), None, ContactLost("gone")])
    beating = beat(door)
    assert door.enough.wait(5)
    beating.stop()

    assert beating.lost is None
    assert door.closed >= 2


def test_a_host_that_cannot_be_reached_at_first_is_tried_again() -> None:
    door, tries = ScriptedDoor([]), 0

    def opening(_: HostAddress) -> ScriptedDoor:
        nonlocal tries
        tries += 1
        if tries < 3:
            raise ContactLost("no route")
        return door

    beating = beat(door, opening)
    assert door.enough.wait(5)
    beating.stop()
    assert tries == 3


def test_a_lease_that_the_host_says_is_over_is_given_up() -> None:
    door = ScriptedDoor([None, HostCallError("the dead-man acted", reason="lease_lost")])
    beating = beat(door)
    deadline = time.monotonic() + 5
    while beating.lost is None and time.monotonic() < deadline:
        time.sleep(0.02)

    assert beating.lost == "the dead-man acted"
    time.sleep(0.5)
    assert len(door.beats) == 2
    beating.stop()


def test_without_a_sign_of_life_the_time_runs_out() -> None:
    door = ScriptedDoor([ContactLost("gone")] * 100)
    beating = beat(door)
    time.sleep(1.0)
    beating.stop()
    assert beating.left < 0
