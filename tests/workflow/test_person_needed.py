"""Where the old state is not back, or not proven, a person is needed: exit 6, and the record says what is so."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ContactLost, HostCallError, LeftToHost
from changectl.core.lifecycle import Outcome
from changectl.workflow.revert import exit_code, revert
from changectl.workflow.revert_order import what_to_revert


def assert_person_needed(stage: Stage, end: object, outcome: Outcome) -> None:
    assert (end.exit_code, end.last.outcome) == (6, outcome)  # type: ignore[attr-defined]
    assert stage.journal.bodies("step.closed")[0]["outcome"] == outcome.value
    assert stage.journal.bodies("run.closed")[0]["exit_code"] == 6


def test_a_restore_that_fails_needs_a_person() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: HostCallError("gpu1: the disk is gone", reason="io_error"), "play gpu1 restore")
    end = stage.apply(WORSE)

    assert_person_needed(stage, end, Outcome.REVERT_FAILED)
    assert "the disk is gone" in end.last.text


def test_after_the_cause_is_mended_revert_brings_back_what_could_not_be() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: HostCallError("gpu1: the disk is gone", reason="io_error"), "play gpu1 restore")
    stage.apply(WORSE)
    stage.world.before = lambda name: None

    order = what_to_revert("R1", stage.journal.events("R1"), "the disk is back")
    ending = revert(order, stage.placed, None, stage.tools)[1]

    assert (exit_code(ending), ending.outcome) == (0, Outcome.REVERTED)
    assert stage.serving_as_before()

    starts = stage.host.starts
    order = what_to_revert("R1", stage.journal.events("R1"), "once more", stage.journal.lines)
    ending = revert(order, stage.placed, None, stage.tools)[1]

    assert (exit_code(ending), ending.reason) == (0, "nothing_to_do")
    assert stage.host.starts == starts


def test_a_revert_that_could_not_be_proven_is_not_called_done_the_next_time() -> None:
    stage = Stage()
    stage.apply(BETTER)
    stage.fail_at(1, lambda: HostCallError("gpu1: cannot say", reason="io_error"), "door gpu1 verify")
    order = what_to_revert("R1", stage.journal.events("R1"), "it is Friday", stage.journal.lines)
    first = revert(order, stage.placed, None, stage.tools)[1]
    stage.world.before = lambda name: None

    order = what_to_revert("R1", stage.journal.events("R1"), "once more", stage.journal.lines)
    second = revert(order, stage.placed, None, stage.tools)[1]

    assert (exit_code(first), first.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert (exit_code(second), second.outcome, second.reason) == (0, Outcome.REVERTED, "reverted")
    assert stage.journal.bodies("verify.outcome")[-1]["verified"] is True


def test_a_restored_service_that_does_not_answer_needs_a_person() -> None:
    stage = Stage()

    def break_model(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "1":
            host.refuses = lambda argv: "llama_model_load: failed to open GGUF file"

    stage.host.on_start = break_model
    end = stage.apply(WORSE)

    assert_person_needed(stage, end, Outcome.REVERT_UNVERIFIED)
    assert stage.unchanged()
    assert "does not answer" in end.last.text


def test_a_model_that_is_not_the_one_before_needs_a_person() -> None:
    stage = Stage()

    def swap(host: FakeHost) -> None:
        host.model = {"m.gguf": (100, "bb")}

    stage.host.on_start = swap
    end = stage.apply(WORSE)

    assert_person_needed(stage, end, Outcome.REVERT_UNVERIFIED)
    assert "model file m.gguf is not the one before" in end.last.text


def test_a_process_that_came_back_with_other_arguments_needs_a_person() -> None:
    stage = Stage()

    def meddle(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "4":
            host.process.argv = [*host.process.argv[:1], "--new", *host.process.argv[1:]]

    stage.host.on_start = meddle
    end = stage.apply(WORSE)
    assert_person_needed(stage, end, Outcome.REVERT_UNVERIFIED)
    assert 'with other arguments than before: argument 1: absent -> "--new"' in end.last.text
    assert "another revert would find the same" in end.last.text
    assert "changectl revert R1 --accept-present --reason TEXT" in end.last.text


def called_by_a_shim(host: FakeHost) -> None:
    """From now on the service's program is called without its folder."""
    if host.process is not None:
        host.process.argv[0] = "llama-server"


def test_a_program_that_is_only_called_by_another_name_is_back_and_judged() -> None:
    stage = Stage()
    stage.host.on_start = called_by_a_shim
    end = stage.apply(WORSE)

    assert (end.last.outcome, end.last.reason) == (Outcome.REVERTED, "regressed")
    called = 'argument 0: "/opt/llama-server" -> "llama-server" (same program)'
    assert stage.journal.bodies("verify.outcome")[-1]["called"] == called


def test_another_program_behind_the_same_name_needs_a_person() -> None:
    stage = Stage()

    def other(host: FakeHost) -> None:
        called_by_a_shim(host)
        host.facts["exe"] = "/usr/local/bin/llama-server"

    stage.host.on_start = other
    end = stage.apply(WORSE)
    assert_person_needed(stage, end, Outcome.REVERT_UNVERIFIED)
    assert 'argument 0: "/opt/llama-server" -> "llama-server"' in end.last.text


def test_what_another_revert_may_still_mend_is_not_called_final() -> None:
    stage = Stage()
    stage.host.on_start = lambda host: host.model.update({"m.gguf": (100, "bb")})
    end = stage.apply(WORSE)
    assert_person_needed(stage, end, Outcome.REVERT_UNVERIFIED)
    assert "another revert would find the same" not in end.last.text


def test_a_host_that_is_gone_while_the_new_configuration_runs_is_left_to_its_dead_man() -> None:
    stage = Stage()
    gone = False

    def lose(name: str) -> None:
        nonlocal gone
        gone = gone or (name == "door gpu1 measure" and stage.world.trace.count(name) == 2)
        if gone and name.startswith(("door", "play")):
            raise ContactLost("gpu1: gone")

    stage.world.before = lose
    with pytest.raises(LeftToHost, match="changectl recover R1") as left:
        stage.apply(BETTER)

    assert left.value.exit_code == 9
    assert "R1.1" in stage.host.keeper.armed
    assert stage.heart.beatings[-1].stopped  # or it would wait for ever
    assert stage.journal.bodies("contact.lost")
    assert not stage.journal.bodies("step.closed") + stage.journal.bodies("run.closed")


def test_a_dead_door_does_not_keep_the_playbook_from_restoring_but_nothing_is_proven() -> None:
    stage = Stage()
    dead = False

    def lose(name: str) -> None:
        nonlocal dead
        dead = dead or name == "journal verdict"
        if dead and name.startswith("door"):
            raise ContactLost("gpu1: gone")

    stage.world.before = lose
    with pytest.raises(LeftToHost):
        stage.apply(WORSE)

    assert stage.serving_as_before()


def test_somebody_elses_edit_of_the_new_file_is_not_overwritten_on_the_way_back() -> None:
    stage = Stage()

    def edit(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "1":
            unit = "/etc/systemd/system/chat.service"
            host.files[unit] = host.files[unit].replace(b"--parallel 1\n", b"--parallel 1 --mine\n")

    stage.host.on_start = edit
    end = stage.apply(WORSE)

    assert_person_needed(stage, end, Outcome.REVERT_FAILED)
    assert b"--parallel 1 --mine\n" in stage.host.files["/etc/systemd/system/chat.service"]
    assert stage.host.process is not None
    assert stage.host.starts == 1  # seen before the stop


def test_one_instance_that_cannot_come_back_leaves_the_other_serving() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu2"].speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)
    stage.fail_at(1, lambda: HostCallError("gpu2: the disk is full", reason="disk_full"), "play gpu2 restore")
    end = stage.apply(BETTER, extra="on_partial: revert_all\n")

    assert_person_needed(stage, end, Outcome.REVERT_FAILED)
    gpu1 = stage.hosts["gpu1"].process
    assert gpu1 is not None
    assert gpu1.argv[-1] == "8"
    assert "play gpu1 restore" not in stage.world.trace
    assert "gpu1: runs on the change" in end.last.text


def test_a_host_that_answers_again_in_time_is_restored_without_its_dead_man() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "play gpu1 restore")
    end = stage.apply(WORSE)

    assert (end.exit_code, end.last.outcome) == (4, Outcome.REVERTED)
    assert stage.serving_as_before()
    assert stage.host.keeper.armed == {}


@pytest.mark.parametrize("kind", ["evidence", "probe"])
def test_a_gap_in_the_evidence_never_stops_the_way_back(kind: str) -> None:
    stage = Stage()

    def fail(name: str) -> None:
        trace = stage.world.trace
        on_the_way = "journal verdict" in trace and "play gpu1 restore" not in trace
        if on_the_way and name == f"door gpu1 {kind}":
            raise RuntimeError("nobody expected this")

    stage.world.before = fail
    end = stage.apply(WORSE)

    assert (end.exit_code, end.last.outcome) == (4, Outcome.REVERTED)
    body = stage.journal.bodies("evidence.outcome")[0]
    assert body["ok"] is True
    assert set(body["missing"]) == ({"host", "log"} if kind == "evidence" else {"pages"})
