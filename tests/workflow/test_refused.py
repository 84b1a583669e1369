"""What is refused has touched nothing: exit 3, no play, no restart, every byte as it was."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import ENV, UNIT, FakeHost
from tests.workflow.stage import BETTER, SERVICE, Stage

from changectl.core.errors import ContactLost, HostCallError, Locked, Refused
from changectl.core.lifecycle import Outcome


def assert_untouched(stage: Stage, code: int, end: object, reason: str) -> None:
    assert (end.exit_code, end.last.outcome, end.last.reason) == (code, Outcome.REFUSED, reason)  # type: ignore[attr-defined]
    assert stage.serving_as_before()
    assert all(host.starts == 0 for host in stage.hosts.values())
    assert not [act for act in stage.world.trace if act.startswith("play")]
    assert stage.journal.bodies("run.closed")[0]["exit_code"] == code


def test_a_failed_pre_check_refuses_and_all_checks_are_recorded() -> None:
    stage = Stage()
    stage.host.model = {}
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "precheck_failed")
    assert "model_whole" in end.last.text
    assert len(stage.journal.bodies("precheck")[0]["results"]) > 15


def test_an_earlier_edit_that_waits_for_a_restart_refuses() -> None:
    stage = Stage()
    stage.host.files[UNIT] = stage.host.files[UNIT].replace(b"--parallel 4", b"--parallel 5")
    stage.before = {"gpu1": stage.host.digests()}
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "precheck_failed")
    assert "values_agree" in end.last.text
    assert stage.host.starts == 0


def test_a_variable_that_somebody_edited_without_a_restart_refuses_although_the_engine_does_not_know_it() -> None:
    stage = Stage()
    stage.host.files[ENV] = b"OMP_NUM_THREADS=3\n"
    stage.before = {"gpu1": stage.host.digests()}
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "precheck_failed")
    assert "OMP_NUM_THREADS: the file and the process differ" in end.last.text
    assert stage.host.starts == 0


def test_a_variable_that_somebody_added_without_a_restart_refuses_too() -> None:
    stage = Stage()
    stage.host.files[ENV] += b"ADDED=1\n"
    stage.before = {"gpu1": stage.host.digests()}
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "precheck_failed")
    assert "ADDED: the file and the process differ" in end.last.text


@pytest.mark.parametrize(
    ("name", "to"), [("port", "9000"), ("host", "10.0.0.9"), ("model", "/srv/other.gguf"), ("alias", "other")]
)
def test_a_value_that_contradicts_the_service_file_refuses_before_the_restart(name: str, to: str) -> None:
    stage = Stage()
    end = stage.apply(extra=f"  - change: {{parameter: {{name: {name}, to: {to}}}}}\n    expect: neutral\n")

    assert_untouched(stage, 3, end, "precheck_failed")
    assert "named_by_service" in end.last.text
    assert "in the service file in the same commit" in end.last.text


def test_a_service_that_is_down_is_told_once_with_what_to_do_and_the_rest_as_not_checked() -> None:
    stage = Stage()
    stage.host.process = None
    end = stage.apply(BETTER)

    first, second = end.last.text.splitlines()
    assert first.startswith("gpu1: healthy_now: the service is not up: ")
    assert first.endswith("; bring it up on its present configuration first")
    assert second.startswith("gpu1: not checked because of that, so not passed either: values_agree, port_owner")
    recorded = {one["name"]: one["state"] for one in stage.journal.bodies("precheck")[0]["results"]}
    assert {recorded[name] for name in second.partition("either: ")[2].split(", ")} == {"unknown"}
    assert (end.exit_code, end.last.reason, stage.host.starts) == (3, "precheck_failed", 0)


def test_saved_bytes_that_cannot_be_restored_refuse() -> None:
    stage = Stage()
    stage.host.restorable = False
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "precheck_failed")
    assert "restorable" in end.last.text


def test_another_value_than_the_plan_asserts_refuses() -> None:
    stage = Stage()
    change = "  - change: {parameter: {name: parallel, from: 2, to: 8}}\n    expect: neutral\n"
    end = stage.apply(extra=change)

    assert_untouched(stage, 3, end, "from_differs")
    assert not stage.host.saved


def test_a_host_that_is_not_there_refuses_before_any_other_is_touched() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.fail_at(1, lambda: ContactLost("gpu2: no route"), "open gpu2")
    assert_untouched(stage, 3, stage.apply(BETTER), "contact_lost")


def test_a_host_that_cannot_say_what_a_check_needs_refuses() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: HostCallError("no help", reason="timed_out"), "door gpu1 help")
    end = stage.apply(BETTER)

    assert_untouched(stage, 3, end, "precheck_failed")
    assert "value_known" in end.last.text


@pytest.mark.parametrize("reason", ["immutable", "read_only", "disk_full", "not_permitted"])
def test_a_write_that_the_host_refuses_leaves_the_service_running_as_it_was(reason: str) -> None:
    stage = Stage()
    refusal = HostCallError("gpu1: cannot write", reason=reason, details={"written": False})
    stage.fail_at(1, lambda: refusal, "play gpu1 apply")
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (3, Outcome.REFUSED, reason)
    assert stage.serving_as_before()
    assert stage.host.starts == 0
    assert stage.journal.bodies("verify.outcome")[0]["verified"] is True


@pytest.mark.parametrize(
    ("reason", "details"), [("disk_full", {"written": True}), ("read_only", {}), ("overwritten", {"written": True})]
)
def test_what_may_have_been_written_is_brought_back_and_never_called_untouched(
    reason: str, details: dict[str, bool]
) -> None:
    stage = Stage()
    stage.fail_at(
        1, lambda: HostCallError("gpu1: it went wrong late", reason=reason, details=details), "play gpu1 apply"
    )
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.REVERTED, reason)
    assert [act for act in stage.world.trace if act == "play gpu1 restore"]
    assert stage.serving_as_before()


def test_a_refused_write_after_which_the_service_does_not_run_is_brought_back_and_not_called_untouched() -> None:
    stage = Stage()

    def refuse(name: str) -> None:
        if name == "play gpu1 apply":
            stage.host.process = None
            raise HostCallError("gpu1: cannot write", reason="immutable", details={"written": False})

    stage.world.before = refuse
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (5, Outcome.REVERTED)
    assert stage.serving_as_before()


def test_a_file_that_somebody_edits_meanwhile_keeps_their_edit_and_the_service_runs_on() -> None:
    stage = Stage()

    def edit(host: FakeHost, call: str) -> None:
        if call == "measure":
            host.files[UNIT] += b"# mine\n"

    stage.host.on_call = edit
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "changed_by_other")
    assert stage.host.files[UNIT].endswith(b"# mine\n")
    assert stage.host.starts == 0
    assert not [act for act in stage.world.trace if act.endswith("restore")]


def test_a_refused_write_on_the_second_instance_leaves_the_first_as_it_was_kept() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.fail_at(1, lambda: HostCallError("gpu2: cannot write", reason="immutable"), "play gpu2 apply")
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.KEPT_PARTLY, "immutable")
    assert stage.journal.bodies("step.closed")[0]["instances"] == {"gpu1": "kept", "gpu2": "reverted"}
    assert stage.hosts["gpu2"].digests() == stage.before["gpu2"]


def test_a_run_that_was_cut_off_has_to_be_taken_back_first() -> None:
    stage = Stage()
    stage.memory.cut_off = ["R0"]
    with pytest.raises(Refused, match="changectl recover R0"):
        stage.apply(BETTER)

    assert stage.journal.lines == []
    assert stage.serving_as_before()


def test_a_locked_service_is_not_even_looked_at() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: Locked("run R0 of kim is open"), "records lock")
    with pytest.raises(Locked, match="run R0 of kim is open\nto wait for its end, add for example --wait 30m"):
        stage.apply(BETTER)

    assert stage.world.trace == ["records lock"]


def test_a_live_service_without_a_level_called_low_is_not_loaded_and_no_run_is_opened() -> None:
    stage = Stage(service_text=SERVICE.replace("limits: {load_on_live: true}\n", ""))
    with pytest.raises(Refused) as caught:
        stage.apply(BETTER)

    assert caught.value.reason == "load_not_allowed"
    assert stage.journal.lines == []
