"""One look at a live service through the open door."""

from __future__ import annotations

from tests.workflow.stage import Stage

from changectl.core.telemetry.live import live_window
from changectl.workflow.contact import open_target
from changectl.workflow.live import read_live
from changectl.workflow.target import Target


def target(stage: Stage) -> Target:
    return open_target(stage.placed[0], stage.tools)


def test_a_look_has_process_memory_and_page_and_says_what_is_not_exposed() -> None:
    stage = Stage()
    found = read_live(target(stage))

    assert found.process == (101, 101)
    assert found.service_memory == 1000
    assert found.engine.value("generated_tokens") == 0
    assert found.waiting is None
    assert found.engine.missing["waiting"] == "not on the metrics page"
    assert found.missing["gpus"]


def test_a_service_that_was_restarted_in_between_leaves_no_figures_of_the_engine() -> None:
    stage = Stage()
    looked = target(stage)
    earlier = read_live(looked)
    stage.host.restart()
    stage.world.seconds += 60

    assert live_window(earlier, read_live(looked)).restarted


def test_a_service_that_does_not_run_is_a_look_with_nothing_of_the_engine() -> None:
    stage = Stage()
    stage.host.stop()
    found = read_live(target(stage))

    assert found.process is None
    assert found.engine.readings == {}
    assert "connection refused" in found.engine.missing["waiting"]
