"""What is not kept goes back, proven; the exit code says for cause (4) or for lack of evidence (5)."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import ENV, UNIT, FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage
from tests.workflow.tempers import answers_too_little_after_the_change, while_measured

from changectl.core.lifecycle import Outcome
from changectl.core.ports import ChecksResult


def assert_reverted(stage: Stage, end: object, code: int, reason: str) -> None:
    assert (end.exit_code, end.last.outcome, end.last.reason) == (code, Outcome.REVERTED, reason)  # type: ignore[attr-defined]
    assert stage.serving_as_before()
    verified = stage.journal.bodies("verify.outcome")
    assert verified
    assert all(body["verified"] for body in verified)
    assert stage.journal.bodies("step.closed")[0]["outcome"] == "reverted"
    assert stage.journal.bodies("run.closed")[0]["exit_code"] == code


def test_a_change_that_makes_it_worse_is_taken_back() -> None:
    stage = Stage()
    assert_reverted(stage, stage.apply(WORSE), 4, "regressed")


def test_the_way_back_keeps_the_evidence_first_then_restores_then_proves() -> None:
    stage = Stage()
    stage.apply(WORSE)
    acts = stage.world.acts()

    assert acts[acts.index("journal verdict") :] == [
        "journal verdict",
        "door gpu1 evidence",
        "records put_blob",
        "journal evidence.outcome",
        "journal lease.intent",
        "door gpu1 lease",
        "journal lease.outcome",
        "journal restore.intent",
        "play gpu1 restore",
        "journal restore.outcome",
        "journal ready.outcome",
        "journal verify.intent",
        "door gpu1 verify",
        "door gpu1 verify",
        "journal verify.outcome",
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


def test_an_engine_that_refuses_to_start_is_taken_back_with_its_own_words() -> None:
    stage = Stage()
    stage.host.refuses = lambda argv: "error: invalid argument: --parallel" if argv[-1] == "8" else None
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 4, "did_not_start")
    assert "invalid argument" in end.last.text
    assert stage.journal.bodies("ready.outcome")[0]["cause"] == "unknown_flag"


def test_an_engine_that_never_answers_is_given_up_at_its_deadline() -> None:
    stage = Stage()

    def slow(host: FakeHost) -> None:
        host.load_seconds = 1000.0 if host.process is not None and host.process.argv[-1] == "8" else 1.0

    stage.host.on_start = slow
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 4, "did_not_start")
    assert stage.journal.bodies("ready.outcome")[0]["reason"] == "deadline"


def test_a_value_that_the_engine_ignores_is_not_effective() -> None:
    stage = Stage()
    stage.host.reported = lambda argv: {"total_slots": 4}
    assert_reverted(stage, stage.apply(BETTER), 4, "not_effective")


def test_another_file_that_moved_with_the_change_spoils_the_comparison() -> None:
    stage = Stage()

    def meddle(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "8":
            host.files[ENV] += b"NEW=1\n"

    stage.host.on_start = meddle
    end = stage.apply(BETTER)

    # What this run wrote is back; the other file is somebody else's, and whether it may stay only a person can say.
    assert (end.exit_code, end.last.outcome, end.last.reason) == (6, Outcome.REVERT_UNVERIFIED, "undeclared_change")
    assert f"file {ENV}" in end.last.text
    assert f"{ENV} was changed by somebody else" in end.last.text
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "4"


def test_an_argument_that_nobody_declared_makes_the_comparison_invalid() -> None:
    stage = Stage()

    def meddle(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "8":
            host.process.argv = [*host.process.argv[:1], "--unheard-of", *host.process.argv[1:]]

    stage.host.on_start = meddle
    assert_reverted(stage, stage.apply(BETTER), 5, "invalid")


def test_a_variable_that_nobody_declared_is_named() -> None:
    stage = Stage()

    def meddle(host: FakeHost) -> None:
        if host.process is not None and host.process.argv[-1] == "8":
            host.process.environ["EXTRA"] = "1"

    stage.host.on_start = meddle
    end = stage.apply(BETTER)

    assert_reverted(stage, end, 5, "undeclared_change")
    assert "variable EXTRA" in end.last.text


def test_too_little_evidence_takes_the_change_back() -> None:
    stage = Stage()
    answers_too_little_after_the_change(stage.host)
    assert_reverted(stage, stage.apply(BETTER), 5, "inconclusive")


def test_a_person_who_says_no_gets_the_saved_configuration() -> None:
    stage = Stage(answer=False)
    answers_too_little_after_the_change(stage.host)
    end = stage.apply(BETTER, extra="    on_inconclusive: ask\n")

    assert_reverted(stage, end, 5, "inconclusive")
    assert stage.journal.bodies("asked")[0]["answer"] is False


def test_no_measurement_at_all_is_never_a_pass() -> None:
    stage = Stage()
    while_measured(stage.host, "B", lambda host: setattr(host, "requests", 0))
    assert_reverted(stage, stage.apply(BETTER), 5, "invalid")


@pytest.mark.parametrize("result", [ChecksResult(2, 1, "1 failed"), ChecksResult(0, 0, "no tests ran")])
def test_the_operators_checks_have_a_say(result: ChecksResult) -> None:
    stage = Stage()
    stage.checks.answer = result
    end = stage.apply(BETTER, extra="    checks: [c.py]\n", checks=("/p/c.py",))
    assert_reverted(stage, end, 4, "check_failed")
    said = stage.journal.bodies("checks.outcome")[0]
    assert (said["ok"], said["reason"], said["failed"]) == (False, "check_failed", result.failed)


def test_a_service_that_restarts_under_load_has_regressed() -> None:
    stage = Stage()

    def crash(host: FakeHost, call: str) -> None:
        if call == "measure" and host.process is not None and host.process.argv[-1] == "8":
            host.process.pid += 1000

    stage.host.on_call = crash
    assert_reverted(stage, stage.apply(BETTER), 4, "regressed")


def test_a_second_step_is_not_begun_after_the_first_went_back() -> None:
    stage = Stage()
    end = stage.apply(WORSE, BETTER)

    assert_reverted(stage, end, 4, "regressed")
    assert len(end.endings) == 1
    assert len(stage.journal.bodies("step.started")) == 1


def test_a_second_step_that_goes_back_leaves_the_first_in_force() -> None:
    stage = Stage()
    end = stage.apply(BETTER, WORSE)

    assert (end.exit_code, end.last.reason) == (4, "regressed")
    assert [ending.outcome for ending in end.endings] == [Outcome.KEPT, Outcome.REVERTED]
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"


def test_instances_that_were_not_reached_are_left_alone() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu1"].speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)
    stage.apply(BETTER)

    assert stage.hosts["gpu2"].starts == 0
    assert not [act for act in stage.world.trace if act.startswith("play gpu2")]


def test_contact_that_comes_back_in_time_ends_in_the_proven_old_state() -> None:
    from changectl.core.errors import ContactLost

    stage = Stage()
    stage.fail_at(2, lambda: ContactLost("gpu1: gone"), "door gpu1 measure")
    assert_reverted(stage, stage.apply(BETTER), 5, "contact_lost")


def test_a_change_whose_host_did_not_record_that_it_is_kept_goes_back() -> None:
    stage = Stage()
    stage.world.before = lambda name: stage.host.keeper.armed.clear() if name == "door gpu1 disarm" else None
    end = stage.apply(BETTER)

    assert (end.last.outcome, end.last.reason) == (Outcome.REVERTED, "not_armed")
    assert stage.serving_as_before()


def test_a_change_whose_file_somebody_else_put_back_meanwhile_is_not_kept() -> None:
    stage = Stage()
    saved = stage.host.files[UNIT]

    def put_back(name: str) -> None:
        if name == "journal verdict":
            stage.host.files[UNIT], stage.host.stale = saved, True

    stage.world.before = put_back
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (5, "overwritten")
    assert stage.serving_as_before()
