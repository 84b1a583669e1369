"""`revert` takes kept steps back, last first, each proven; a second time changes nothing."""

from __future__ import annotations

import os
import signal

import pytest
from tests.workflow.fake_host import UNIT, FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ContactLost, Refused
from changectl.core.lifecycle import Ending, Outcome
from changectl.workflow.revert import exit_code, later_run, revert, what_to_revert


def take_back(stage: Stage, run: str) -> Ending:
    order = what_to_revert(run, stage.journal.events(run), "it is Friday")
    return revert(order, stage.placed, later_run(order, stage.journal.lines), stage.tools)[1]


def test_a_kept_change_is_taken_back_and_proven() -> None:
    stage = Stage()
    stage.apply(BETTER)
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.outcome, ending.reason) == (0, Outcome.REVERTED, "reverted")
    assert stage.serving_as_before()
    assert stage.journal.bodies("verify.outcome")[-1]["verified"] is True
    assert stage.journal.bodies("run.closed")[-1]["exit_code"] == 0


def test_a_second_time_changes_nothing() -> None:
    stage = Stage()
    stage.apply(BETTER)
    take_back(stage, "R1")
    starts = stage.host.starts
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (0, "nothing_to_do")
    assert stage.host.starts == starts


def test_two_steps_on_the_same_file_go_back_through_both_last_first() -> None:
    stage = Stage()
    stage.apply(6, BETTER)
    ending = take_back(stage, "R1")

    assert exit_code(ending) == 0
    assert stage.serving_as_before()
    restores = [arguments["changectl_run"] for arguments in stage.playbooks.arguments[2:]]
    assert restores == ["R1.2", "R1.1"]


def test_only_the_kept_steps_of_a_run_go_back() -> None:
    stage = Stage()
    stage.apply(BETTER, WORSE)
    ending = take_back(stage, "R1")

    assert exit_code(ending) == 0
    assert stage.serving_as_before()


def test_all_instances_go_back() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.apply(BETTER)
    assert exit_code(take_back(stage, "R1")) == 0
    assert stage.serving_as_before()


def test_a_change_on_which_a_later_one_stands_is_refused_by_its_name() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.apply(10)
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (3, "changed_since")
    assert "run R2 changed it since" in ending.text
    assert b"--parallel 10" in stage.host.files[UNIT]


def test_after_the_later_one_went_back_the_earlier_one_can() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.apply(10)
    assert exit_code(take_back(stage, "R2")) == 0
    assert exit_code(take_back(stage, "R1")) == 0
    assert stage.serving_as_before()


def test_a_file_that_somebody_edited_since_is_left_to_them() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.host.files[UNIT] += b"# mine\n"
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (3, "changed_since")
    assert "somebody edited it since" in ending.text


@pytest.mark.parametrize("slots", [WORSE, 4])
def test_a_run_that_kept_nothing_has_nothing_to_take_back(slots: int) -> None:
    stage = Stage()
    stage.apply(slots)
    with pytest.raises(Refused) as caught:
        take_back(stage, "R1")
    assert caught.value.reason == "nothing_kept"


def test_a_run_that_was_cut_off_is_taken_back_from_what_it_saved() -> None:
    stage = Stage()
    stage.fail_at(1, KeyboardInterrupt, "journal effective.outcome")
    del stage.journal.lines[:]
    stage.world.before = lambda name: None
    stage.apply(BETTER)
    stage.journal.lines = [e for e in stage.journal.lines if e.kind not in ("step.closed", "run.closed", "verdict")]
    ending = take_back(stage, "R1")

    assert exit_code(ending) == 0
    assert stage.serving_as_before()


def test_a_cut_off_run_that_saved_nothing_is_settled_without_touching_the_host() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.journal.lines = [event for event in stage.journal.lines if event.kind == "run.opened"]
    starts = stage.host.starts
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (0, "nothing_to_do")
    assert stage.host.starts == starts


def test_a_host_that_is_gone_refuses_and_one_that_goes_meanwhile_needs_a_person() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "open")
    assert exit_code(take_back(stage, "R1")) == 3

    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "play")
    ending = take_back(stage, "R1")
    assert (exit_code(ending), ending.outcome) == (6, Outcome.REVERT_FAILED)


def test_a_restored_service_that_does_not_answer_needs_a_person() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.host.refuses = lambda argv: "llama_model_load: failed to open GGUF file"
    ending = take_back(stage, "R1")
    assert (exit_code(ending), ending.outcome) == (6, Outcome.REVERT_UNVERIFIED)


def test_an_error_nobody_expected_gets_its_end_in_the_record() -> None:
    stage = Stage()
    stage.apply(BETTER)

    def fail(host: FakeHost, call: str) -> None:
        raise RuntimeError("nobody expected this")

    stage.host.on_call = fail
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.outcome) == (1, Outcome.ABORTED)
    assert stage.journal.bodies("run.closed")[-1]["exit_code"] == 1


def test_a_signal_during_the_way_back_waits_and_one_before_it_ends_the_run() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.world.before = lambda name: os.kill(os.getpid(), signal.SIGINT) if name == "play gpu1 restore" else None
    assert exit_code(take_back(stage, "R1")) == 0
    assert stage.serving_as_before()


def test_an_instance_that_left_the_service_refuses() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.apply(BETTER)
    order = what_to_revert("R1", stage.journal.events("R1"), "why")
    _, ending = revert(order, stage.placed[:1], None, stage.tools)
    assert (exit_code(ending), ending.reason) == (3, "instance_gone")
