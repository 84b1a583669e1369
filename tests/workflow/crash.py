"""Controllers that die: kill -9 before a port call, and the next controller that finds what is left."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from tests.workflow.stage import Stage
from tests.workflow.world import World

from changectl.core.lifecycle import Ending
from changectl.workflow.open_run import open_run
from changectl.workflow.recover import recover


class Killed(BaseException):
    """kill -9: nothing that follows is done."""


def die_before(world: World, when: Callable[[str, int], bool]) -> Callable[[str], None]:
    """For `World.before`: from the first call on for which `when` (name, number from 1) holds, nothing is done."""
    dead, begun = False, len(world.trace)

    def kill(name: str) -> None:
        nonlocal dead
        dead = dead or when(name, len(world.trace) - begun)
        if dead:
            raise Killed

    return kill


def killed_at(number: int, *slots: int, names: tuple[str, ...] = ("gpu1",)) -> Stage:
    """A run whose controller died right before a port call, counted from 1."""
    stage = Stage(names)
    stage.world.before = die_before(stage.world, lambda _, seen: seen >= number)
    with contextlib.suppress(Killed):
        stage.apply(*slots)
    stage.world.before = lambda name: None
    return stage


def settle(stage: Stage, run: str = "R1", *, go_on: bool = False) -> Ending:
    """What `changectl recover RUN` does."""
    events = stage.journal.events(run)
    reverts = events[0].body.get("reverts")
    order = open_run(events, stage.journal.events(str(reverts)) if reverts else ())
    return recover(order, stage.placed, stage.tools, go_on=go_on)
