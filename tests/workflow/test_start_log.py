"""What an engine says only while it starts is kept, and read again for the same process however long its log is."""

from __future__ import annotations

from typing import Any

from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage

SAID = "I srv load_model: initializing, n_slots = {slots}, n_ctx_slot = 256, kv_unified = 'false'"


def says_its_capacity(host: FakeHost) -> None:
    """As llama-server does: the size of the whole cache stands nowhere else."""
    if host.process is not None:
        host.log.append(SAID.format(slots=host.process.argv[-1]))


def capacities(stage: Stage) -> list[Any]:
    return [body["summary"]["facts"].get("kv_capacity") for body in stage.journal.bodies("measure.outcome")]


def test_a_start_leaves_what_was_said_and_by_which_process() -> None:
    stage = Stage()
    stage.host.on_start = says_its_capacity
    assert stage.host.process is not None
    stage.host.process.pid = 77
    stage.apply(BETTER)
    (ready,) = stage.journal.bodies("ready.outcome")

    assert stage.records.blobs[ready["log_blob"]].decode() == SAID.format(slots=8)
    assert stage.host.process is not None
    assert ready["process"]["pid"] == stage.host.process.pid


def test_an_instance_that_runs_for_long_is_judged_by_what_it_said_when_it_started() -> None:
    stage = Stage()
    stage.host.on_start = says_its_capacity
    stage.memory.said = [SAID.format(slots=4)]
    stage.apply(BETTER)
    assert capacities(stage) == [1024.0, 2048.0]


def test_without_that_it_is_not_known_before_the_change() -> None:
    stage = Stage()
    stage.host.on_start = says_its_capacity
    stage.apply(BETTER)
    assert capacities(stage) == [None, 2048.0]


def test_a_log_that_cannot_be_kept_stops_nothing() -> None:
    stage = Stage()
    stage.host.on_start = says_its_capacity
    assert stage.host.process is not None
    stage.host.process.pid = 77
    stage.fail_at(4, lambda: OSError("the disk is full"), "records put_blob")  # after model, samples and baseline
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    assert stage.journal.bodies("ready.outcome")[0]["log_blob"] is None
