"""`revert` takes kept steps back, last first, each proven; a second time changes nothing."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from tests.workflow.fake_host import ENV, UNIT, FakeHost
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


def test_a_host_that_is_gone_refuses_and_one_that_goes_meanwhile_is_asked_again() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "open")
    assert exit_code(take_back(stage, "R1")) == 3

    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "play")
    ending = take_back(stage, "R1")
    assert (exit_code(ending), ending.outcome) == (0, Outcome.REVERTED)


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


@pytest.mark.parametrize(("then", "now"), [("gpu1", "gpu1:8080"), ("gpu1:8080", "gpu1")])
def test_an_instance_that_is_called_otherwise_by_now_is_told_with_what_to_write(then: str, now: str) -> None:
    stage = Stage()
    stage.apply(BETTER)
    order = what_to_revert("R1", stage.journal.events("R1"), "why")
    order = replace(order, edits=tuple(replace(edit, instance=then) for edit in order.edits))
    _, ending = revert(order, [replace(stage.placed[0], name=now)], None, stage.tools)

    assert ending.reason == "instance_gone"
    assert f"what is called {now} now: write `name: {then}` for it in the service file" in ending.text


def test_a_later_change_with_another_file_refuses_though_the_edited_one_is_as_it_was_left() -> None:
    stage = Stage()
    stage.apply(BETTER)
    environment = "  - change: {environment: {name: OMP_NUM_THREADS, to: '2'}}\n    expect: neutral\n"
    assert stage.apply(extra=environment).exit_code == 0
    starts = stage.host.starts
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (3, "changed_since")
    assert f"{ENV} changed since this run; run R2 was kept since" in ending.text
    assert stage.host.starts == starts
    assert exit_code(take_back(stage, "R2")) == 0
    assert exit_code(take_back(stage, "R1")) == 0
    assert stage.serving_as_before()


def test_another_file_that_somebody_edited_since_is_left_to_them_and_named() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.host.files[ENV] += b"THEIRS=1\n"
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert f"{ENV} was changed by somebody else" in ending.text
    assert b"--parallel 4\n" in stage.host.files[UNIT]
    assert stage.host.files[ENV].endswith(b"THEIRS=1\n")
    assert stage.host.process is not None


def test_a_revert_of_an_older_run_waits_until_a_cut_off_one_is_settled() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.memory.cut_off = ["R9"]
    with pytest.raises(Refused, match="run R9") as caught:
        take_back(stage, "R1")
    assert caught.value.reason == "unfinished_run"
    assert not [event for event in stage.journal.lines if event.run == "R2"]

    stage.memory.cut_off = ["R1"]  # that very run: this is what settles it
    assert exit_code(take_back(stage, "R1")) == 0


def test_a_revert_that_was_cut_off_while_the_service_was_stopped_is_done_again_and_starts_it() -> None:
    stage = Stage()
    stage.apply(BETTER)
    take_back(stage, "R1")
    stage.journal.lines = [event for event in stage.journal.lines if (event.run, event.kind) != ("R2", "run.closed")]
    stage.memory.cut_off = ["R2"]
    stage.host.stop()
    with pytest.raises(Refused, match="changectl recover R2"):
        take_back(stage, "R2")
    ending = take_back(stage, "R1")

    assert (exit_code(ending), ending.reason) == (0, "reverted")
    assert stage.serving_as_before()


def test_a_run_of_two_steps_whose_way_back_was_cut_off_in_the_middle_goes_back_to_its_beginning() -> None:
    stage = Stage()
    stage.apply(6, BETTER)
    stage.host.files[UNIT] = stage.host.saved["R1.2"][UNIT]  # the second step is back, the first is not
    stage.journal.lines = [event for event in stage.journal.lines if event.kind != "run.closed"]
    stage.host.process = None
    ending = take_back(stage, "R1")

    assert exit_code(ending) == 0
    assert stage.serving_as_before()
    assert [arguments["changectl_run"] for arguments in stage.playbooks.arguments[2:]] == ["R1.1"]


def test_every_revert_goes_above_the_generation_of_the_last_one() -> None:
    stage = Stage()
    stage.apply(BETTER)
    take_back(stage, "R1")
    first = stage.host.generations["R1.1"]
    stage.host.process = None
    stage.journal.lines = [event for event in stage.journal.lines if event.kind != "run.closed"]
    take_back(stage, "R1")
    assert stage.host.generations["R1.1"] > first > 1
