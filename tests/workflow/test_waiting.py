"""Somebody else is at work: exit code 7 at once, or a shown and bounded wait, never a theft."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.core.errors import Locked
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply

OTHER = {"run": "R0.1", "generation": 1, "nonce": "n", "owner": "ann@desk", "seconds": 300.0}


def taken() -> Stage:
    """A host that another controller, with another record, is changing."""
    stage = Stage()
    stage.host.keeper.holder = dict(OTHER)
    return stage


def waiting(stage: Stage, seconds: float) -> RunEnd:
    return apply(stage.order(plan_text(BETTER)), replace(stage.tools, wait_seconds=seconds))


def test_a_host_that_another_run_has_is_left_alone_and_its_owner_is_named() -> None:
    stage = taken()
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (7, Outcome.REFUSED, "held")
    assert "R0.1 of ann@desk" in end.last.text
    assert stage.host.keeper.holder == OTHER
    assert not [act for act in stage.world.acts() if act.startswith(("play", "door gpu1 capture"))]


def test_of_two_hosts_the_free_one_is_given_back_when_the_other_is_taken() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu2"].keeper.holder = dict(OTHER)
    assert stage.apply(BETTER).exit_code == 7

    assert stage.hosts["gpu1"].keeper.holder is None
    assert stage.hosts["gpu2"].keeper.holder == OTHER


def test_who_wants_to_wait_goes_on_as_soon_as_the_host_is_free() -> None:
    stage = taken()

    def leaves(name: str) -> None:
        if stage.world.seconds > 30:
            stage.host.keeper.holder = None if stage.host.keeper.holder == OTHER else stage.host.keeper.holder

    stage.world.before = leaves
    end = waiting(stage, 600)

    assert end.exit_code == 0
    assert 30 < stage.world.seconds < 120
    assert any("waiting" in name for name in stage.world.trace)
    assert [body["ok"] for body in stage.journal.bodies("lease.outcome")] == [True]  # one intent, however long


def test_waiting_has_an_end() -> None:
    stage = taken()
    assert waiting(stage, 20).exit_code == 7
    assert 20 <= stage.world.seconds < 30


def test_waiting_ends_with_a_signal() -> None:
    stage = taken()
    stage.world.before = lambda name: os.kill(os.getpid(), signal.SIGINT) if "waiting" in name else None
    assert waiting(stage, 600).exit_code == 130


def test_the_lock_of_the_service_is_waited_for_alike() -> None:
    stage, tries = Stage(), 0

    def locked(name: str) -> None:
        nonlocal tries
        if name == "records lock":
            tries += 1
            if tries < 4:
                raise Locked("run R0 of ann is open")

    stage.world.before = locked
    assert waiting(stage, 60).exit_code == 0
    assert tries == 4
