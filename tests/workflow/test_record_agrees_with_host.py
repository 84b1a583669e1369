"""What the record says is what stands on the host, where others report success and roll back, or roll back and lie."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import ENV, UNIT, FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage, plan_text
from tests.workflow.tempers import is_changed

from changectl.core.errors import HostCallError
from changectl.core.lifecycle import Outcome
from changectl.core.ports import Json
from changectl.workflow.preview import preview
from changectl.workflow.revert import exit_code, revert
from changectl.workflow.revert_order import what_to_revert

OTHER = 2  # slots; as bad for eight streams as one


def the_host_restores_itself_before_it_hears(stage: Stage) -> None:
    """The lease runs out in the very moment before the decision arrives, so the host refuses it."""

    def expire(name: str) -> None:
        if name == "door gpu1 disarm" and "R1.1" in stage.host.keeper.armed:
            stage.host.lease_runs_out()

    stage.world.before = expire


def test_a_decision_that_the_host_refuses_because_it_restored_itself_is_not_called_kept() -> None:
    stage = Stage()
    the_host_restores_itself_before_it_hears(stage)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.REVERTED, "lease_lost")
    assert stage.serving_as_before()
    assert stage.journal.bodies("host.acted")[0]["outcome"] == "restored"
    assert [body["outcome"] for body in stage.journal.bodies("step.closed")] == ["reverted"]
    assert stage.journal.bodies("run.closed")[0]["exit_code"] == 5
    assert "R1.1" not in stage.host.keeper.decided


def test_a_job_that_rewrites_the_file_a_second_after_the_way_back_is_noticed() -> None:
    stage = Stage()
    restored_at: list[float] = []

    def rewrite(host: FakeHost, call: str) -> None:
        if call == "restore":
            restored_at.append(host.world.seconds)
        elif restored_at and host.world.seconds > restored_at[0] + 1.0:
            host.files[UNIT] = host.files[UNIT].replace(b"--parallel 4", b"--parallel 1")

    stage.host.load_seconds = 3.0
    stage.host.on_call = rewrite
    end = stage.apply(WORSE)

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert f"{UNIT} differs in bytes" in end.last.text
    assert stage.journal.bodies("verify.outcome")[-1]["verified"] is False


def test_a_way_back_that_does_not_help_is_gone_once_and_then_a_person_is_called() -> None:
    stage = Stage()

    def shared_data_breaks(host: FakeHost) -> None:
        if is_changed(host):
            host.refuses = lambda argv: "llama_model_load: failed to open GGUF file"
            host.process = None

    stage.host.on_start = shared_data_breaks
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert stage.world.trace.count("play gpu1 restore") == 1
    assert stage.host.starts == 2  # there, and back; no third
    assert stage.unchanged()


def test_the_way_back_leads_to_the_last_change_that_was_accepted_whatever_failed_since() -> None:
    stage = Stage()
    stage.apply(BETTER)
    accepted = stage.host.digests()
    for slots in (WORSE, OTHER, WORSE, OTHER, WORSE):
        assert stage.apply(slots).last.outcome is Outcome.REVERTED
        assert stage.host.digests() == accepted
    assert stage.apply(2 * BETTER).last.outcome is Outcome.KEPT

    order = what_to_revert("R7", stage.journal.events("R7"), "it is Friday", stage.journal.lines)
    ending = revert(order, stage.placed, None, stage.tools)[1]

    assert (exit_code(ending), ending.outcome) == (0, Outcome.REVERTED)
    assert stage.host.digests() == accepted
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == str(BETTER)


def test_every_file_of_the_service_is_saved_and_compared_though_only_one_is_written() -> None:
    stage = Stage()
    asked: list[list[str]] = []
    capture = stage.host.call_capture

    def remember(args: Json) -> dict[str, object]:
        asked.append(list(args["files"]))
        return capture(args)

    stage.host.call_capture = remember  # type: ignore[method-assign]  # the fake's own answer, remembered
    stage.apply(WORSE)

    assert [sorted(files) for files in asked] == [[ENV, UNIT]]
    assert stage.journal.bodies("verify.outcome")[-1]["files"] == {UNIT: True, ENV: True}
    assert [write["path"] for write in stage.playbooks.arguments[0]["changectl_writes"]] == [UNIT]


def test_who_did_it_is_text_in_the_record_and_needs_no_account_that_still_exists() -> None:
    stage = Stage()
    stage.apply(BETTER)

    assert stage.journal.bodies("run.opened")[0]["actor"] == "kim@desk"


def test_a_plan_that_was_taken_back_is_not_carried_out_again_by_anything_that_still_lives() -> None:
    stage = Stage()
    stage.apply(WORSE)
    starts = stage.host.starts
    stage.host.lease_runs_out()
    late = stage.playbooks.arguments[0]
    with pytest.raises(HostCallError) as refused:
        stage.host.play("apply", late)

    assert refused.value.reason == "stale_generation"
    assert stage.serving_as_before()
    assert stage.host.starts == starts


def test_what_a_preview_showed_is_what_is_recorded_and_what_is_written() -> None:
    stage = Stage()
    (shown,) = preview(stage.order(plan_text(BETTER)), stage.tools)
    stage.apply(BETTER)

    recorded = stage.journal.bodies("edit")[0]
    assert recorded["diff"] == shown.instances[0].diff
    assert recorded["before_sha"] == stage.before["gpu1"][UNIT]
    assert recorded["after_sha"] == stage.host.digests()[UNIT]
