"""A change that does no harm is kept, and everything happens in the order in which it is safe."""

from __future__ import annotations

from tests.workflow.fake_host import UNIT
from tests.workflow.stage import BETTER, SERVICE, Stage
from tests.workflow.tempers import answers_too_little_after_the_change

from changectl.core.lifecycle import Outcome


def test_a_harmless_change_is_kept() -> None:
    stage = Stage()
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    assert end.last.outcome is Outcome.KEPT
    assert b"--parallel 8\n" in stage.host.files[UNIT]
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"
    assert stage.host.starts == 1


def test_the_side_effects_of_a_kept_change_have_their_order() -> None:
    stage = Stage()
    stage.apply(BETTER)

    assert stage.world.acts() == [
        "records lock",
        "journal run.opened",
        "journal step.started",
        "journal lease.intent",
        "door gpu1 lease",
        "journal lease.outcome",
        "journal contact",
        "journal edit",
        "journal capture.intent",
        "door gpu1 capture",
        "records put_snapshot",
        "records put_blob",
        "journal capture.outcome",
        "journal precheck",
        "journal measure.intent",
        "records put_blob",
        "records put_blob",
        "journal measure.outcome",
        "journal write.intent",
        "journal arm.intent",
        "play gpu1 apply",
        "journal arm.outcome",
        "journal write.outcome",
        "journal ready.outcome",
        "journal effective.outcome",
        "journal measure.intent",
        "records put_blob",
        "records put_blob",
        "journal measure.outcome",
        "journal verdict",
        "journal disarm.intent",
        "door gpu1 disarm",
        "journal disarm.outcome",
        "journal step.closed",
        "journal tidy.intent",
        "door gpu1 cleanup",
        "journal tidy.outcome",
        "door gpu1 release",
        "journal run.closed",
    ]


def test_the_dead_man_is_armed_before_the_first_write_and_the_host_records_the_decision() -> None:
    stage = Stage()
    stage.apply(BETTER)
    (armed,), (disarmed,) = stage.journal.bodies("arm.outcome"), stage.journal.bodies("disarm.outcome")
    assert (armed["armed"], armed["reboot_safe"]) == (True, True)
    assert disarmed["decision"] == "kept"
    decided = stage.host.keeper.decided["R1.1"]
    assert (decided["outcome"], decided["nonce"]) == ("kept", armed["nonce"])
    assert decided["head"]["sequence"] > 0
    assert stage.host.keeper.armed == {}


def test_the_host_is_given_back_and_the_signs_of_life_stop() -> None:
    stage = Stage()
    stage.apply(BETTER)
    assert stage.host.keeper.holder is None
    assert all(beating.stopped for beating in stage.heart.beatings)


def test_nothing_to_do_ends_well_without_touching_anything() -> None:
    stage = Stage()
    end = stage.apply(4)

    assert (end.exit_code, end.last.reason) == (0, "nothing_to_do")
    assert stage.serving_as_before()
    assert stage.host.starts == 0
    assert not any(act.startswith("play") for act in stage.world.acts())
    assert [act for act in stage.world.acts() if act.startswith("door")] == ["door gpu1 lease", "door gpu1 release"]


def test_two_instances_get_a_fresh_baseline_each_and_follow_one_another() -> None:
    stage = Stage(("gpu1", "gpu2"))
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    plays = [act for act in stage.world.trace if act.startswith("play")]
    assert plays == ["play gpu1 service", "play gpu1 apply", "play gpu2 service", "play gpu2 apply"]
    assert [host.starts for host in stage.hosts.values()] == [2, 2]


def test_two_steps_follow_each_other() -> None:
    stage = Stage()
    end = stage.apply(6, BETTER)

    assert [ending.outcome for ending in end.endings] == [Outcome.KEPT, Outcome.KEPT]
    assert b"--parallel 8\n" in stage.host.files[UNIT]
    assert sorted(stage.host.saved) == ["R1.1", "R1.2"]


def test_an_inconclusive_change_is_kept_unjudged_where_the_plan_says_so() -> None:
    stage = Stage()
    answers_too_little_after_the_change(stage.host)
    end = stage.apply(BETTER, extra="    on_inconclusive: keep\n")

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT_UNJUDGED)
    assert b"--parallel 8\n" in stage.host.files[UNIT]


def test_one_open_question_among_several_instances_leaves_the_whole_step_unjudged() -> None:
    stage = Stage(("gpu1", "gpu2"))
    answers_too_little_after_the_change(stage.hosts["gpu1"])
    end = stage.apply(BETTER, extra="    on_inconclusive: keep\n")

    assert end.last.outcome is Outcome.KEPT_UNJUDGED
    assert stage.journal.bodies("step.closed")[0]["verdict"] == "inconclusive"


def test_a_person_who_says_yes_keeps_an_inconclusive_change() -> None:
    stage = Stage(answer=True)
    answers_too_little_after_the_change(stage.host)
    end = stage.apply(BETTER, extra="    on_inconclusive: ask\n")

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT_UNJUDGED)
    assert len(stage.asked) == 1


def test_the_operators_checks_run_on_the_host_that_was_changed() -> None:
    stage = Stage()
    end = stage.apply(BETTER, extra="    checks: [checks/a.py]\n", checks=("/p/checks/a.py",))

    assert end.exit_code == 0
    assert stage.checks.asked == [(("/p/checks/a.py",), "gpu1")]
    assert stage.journal.bodies("checks.intent") == [{"host": "gpu1", "files": ["/p/checks/a.py"]}]
    assert stage.world.trace.index("journal checks.intent") < stage.world.trace.index("checks run")
    assert stage.journal.bodies("checks.outcome")[0]["ok"] is True


def test_every_door_is_closed_and_the_lock_is_given_back() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.apply(BETTER)

    assert [door.closed for door in stage.doors.opened] == [True, True]
    assert stage.records.held is None


def test_plays_get_paths_and_digests_but_never_contents() -> None:
    stage = Stage()
    stage.apply(BETTER)
    (arguments,) = stage.playbooks.arguments
    (write,) = arguments["changectl_writes"]

    assert sorted(write) == ["expect", "path", "staged"]
    assert "ExecStart" not in str(arguments)


def test_a_changed_variable_is_not_inherited_from_the_old_process() -> None:
    stage = Stage()
    change = "  - change: {environment: {name: OMP_NUM_THREADS, from: '1', to: '2'}}\n    expect: neutral\n"
    end = stage.apply(extra=change)

    assert end.exit_code == 0
    assert stage.playbooks.arguments[0]["changectl_service"]["environment_drop"] == ["OMP_NUM_THREADS"]
    assert stage.host.process is not None
    assert stage.host.process.environ["OMP_NUM_THREADS"] == "2"


def test_the_deadline_of_a_start_is_recorded_with_its_source() -> None:
    stage = Stage()
    stage.apply(BETTER)
    assert stage.journal.bodies("ready.outcome")[0]["deadline_source"] == "the service file (ready: deadline)"

    stage = Stage(service_text=SERVICE.replace("ready: {deadline: 30s}\n", ""))
    stage.memory.load = 20.0
    stage.apply(BETTER)
    assert stage.journal.bodies("ready.outcome")[0]["deadline"] == 100.0
