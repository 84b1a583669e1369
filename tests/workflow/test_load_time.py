"""A load time is what a start took: the age of a process that nobody started then is none."""

from __future__ import annotations

from tests.workflow.stage import BETTER, Stage

from changectl.core.errors import ContactLost, HostCallError
from changectl.workflow.revert import revert, what_to_revert


def take_back(stage: Stage) -> None:
    revert(
        what_to_revert("R1", stage.journal.events("R1"), "again", stage.journal.lines), stage.placed, None, stage.tools
    )


def test_a_start_leaves_its_load_time_and_how_long_the_service_was_out() -> None:
    stage = Stage()
    stage.host.load_seconds = 20.0
    assert stage.host.process is not None
    stage.host.process.pid = 77
    stage.apply(BETTER)
    (ready,) = stage.journal.bodies("ready.outcome")

    assert (ready["ok"], ready["started"], ready["after"]) == (True, True, "write")
    assert 20.0 <= ready["seconds"] < 21.0
    assert ready["out_seconds"] >= ready["seconds"]


def test_a_way_back_that_had_nothing_to_restart_leaves_neither_load_time_nor_outage() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.fail_at(1, lambda: HostCallError("gpu1: cannot say", reason="io_error"), "door gpu1 verify")
    take_back(stage)
    stage.world.before = lambda name: None
    starts = stage.host.starts
    stage.world.seconds += 3000.0
    take_back(stage)
    first, second = stage.journal.bodies("ready.outcome")[1:]

    assert stage.host.starts == starts
    assert (first["started"], first["after"]) == (True, "restore")
    assert second["started"] is False
    assert second["seconds"] < 5.0  # how long it was waited for, not the age of the process
    assert "out_seconds" not in second


def test_a_start_that_nobody_could_see_leaves_no_load_time() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.fail_at(2, lambda: ContactLost("gpu1 does not answer"), "door gpu1 status")
    take_back(stage)
    stage.world.before = lambda name: None

    assert stage.serving_as_before()
    assert all(not ready["started"] for ready in stage.journal.bodies("ready.outcome")[1:] if ready["ok"])
