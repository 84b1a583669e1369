"""Pre-checks of a service that is sick already, and the way back to a state that was sick."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.workflow.fake_host import ENV, FakeHost
from tests.workflow.incident_stage import (
    BROKEN,
    MENDED,
    crash_looping,
    ended,
    hung,
    mend,
    never_answers_on,
    while_watched,
)
from tests.workflow.stage import BETTER, SERVICE, Stage
from tests.workflow.tempers import is_changed

from changectl.core.lifecycle import Outcome


def levels(stage: Stage) -> dict[str, tuple[str, str]]:
    return {one["name"]: (one["level"], one["detail"]) for one in stage.journal.bodies("precheck")[0]["results"]}


def test_what_a_sick_service_cannot_pass_is_waived_each_in_a_line_of_its_own() -> None:
    stage = crash_looping()
    mend(stage)
    found = levels(stage)
    waived = {name for name, (_, detail) in found.items() if detail.endswith("(waived because of the incident)")}

    assert {"healthy_now", "values_agree", "port_owner"} <= waived
    assert {found[name][0] for name in waived} == {"advice"}
    required = ("restorable", "disk_space", "file_writable", "unit_verifies", "start_limit")
    assert {found[name][0] for name in required} == {"required"}
    for name in waived - {"limits_present", "edited_since_start"}:
        assert any(note.startswith(f"gpu1: {name}: ") and "waived" in note for note in stage.reporter.notes), name


def cannot_be_restored(stage: Stage) -> None:
    stage.host.restorable = False


def no_room_to_start(stage: Stage) -> None:
    stage.host.read_only = ("/etc/systemd/system/chat.service",)


@pytest.mark.parametrize(
    ("spoil", "named"), [(cannot_be_restored, "restorable"), (no_room_to_start, "disk_space")], ids=["saved", "disk"]
)
def test_what_protects_the_way_back_refuses_in_an_incident_too(spoil: Callable[[Stage], None], named: str) -> None:
    stage = crash_looping()
    spoil(stage)
    end = mend(stage)

    assert ended(end) == (3, Outcome.REFUSED, "precheck_failed")
    assert end.last.text.startswith(f"gpu1: {named}: ")
    assert "healthy_now" not in end.last.text
    assert stage.unchanged()
    assert stage.playbooks.arguments == []


def test_an_impossible_value_refuses_in_an_incident_too() -> None:
    stage = crash_looping()
    change = "  - change: {parameter: {name: parallel, to: many}}\n    expect: neutral\n"
    end = mend(stage, extra=change)

    assert ended(end) == (3, Outcome.REFUSED, "precheck_failed")
    assert "value_known" in end.last.text


def test_a_program_that_does_not_run_is_asked_by_what_its_unit_would_start() -> None:
    stage = crash_looping()
    stage.host.exec_start = "{ path=/opt/llama-server ; argv[]=/opt/llama-server --parallel 4 ; ignore_errors=no ; }"
    assert ended(mend(stage)) == MENDED
    assert levels(stage)["value_known"] == ("required", "parallel is in the engine's own help")


def test_nothing_is_waived_on_a_service_that_answers() -> None:
    stage = Stage()
    end = mend(stage)

    assert ended(end) == MENDED
    assert "waived" not in str(levels(stage))


def test_a_service_that_hangs_is_mended() -> None:
    stage = hung()
    assert ended(mend(stage)) == MENDED


@pytest.mark.parametrize("sick", [crash_looping, hung])
def test_a_change_that_does_not_help_goes_back_to_the_sick_state_and_says_how_that_was(
    sick: Callable[[], Stage],
) -> None:
    stage = sick()
    never_answers_on(stage, BETTER)
    before = stage.world.seconds
    end = mend(stage)

    assert ended(end) == (4, Outcome.REVERTED, "did_not_start")
    assert stage.unchanged()
    assert "does not answer" in end.last.text
    how = "it did not run: activating, auto-restart" if sick is crash_looping else "it ran and did not answer"
    assert f"did not before the change: {how}" in end.last.text
    (proof,) = stage.journal.bodies("verify.outcome")
    assert (proof["verified"], proof["answers"]) == (True, False)
    assert stage.world.seconds - before < 200, "nobody waits for long for what never was"
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "reverted"


def test_a_saved_state_that_answers_after_the_restart_is_said_to_answer() -> None:
    stage = Stage()
    stage.host.process = None  # somebody stopped it
    while_watched(stage, FakeHost.stop)
    end = mend(stage)

    assert ended(end) == BROKEN
    assert stage.serving_as_before()
    assert "is back and answers (before the change it did not run: failed)" in end.last.text


def test_a_process_that_ran_and_does_not_come_back_needs_a_person() -> None:
    stage = hung()
    while_watched(stage, lambda host: setattr(host, "refuses", lambda argv: "error: cannot start"))
    stage.host.on_call = lambda host, call: host.restart() if call == "status" and host.refuses([]) else None
    end = mend(stage)

    assert ended(end) == (6, Outcome.REVERT_UNVERIFIED, "guard_broken")
    assert "no running process to compare" in end.last.text


def test_another_file_that_moved_is_found_although_there_was_no_process_to_compare() -> None:
    stage = crash_looping()

    def meddle(host: FakeHost) -> None:
        if is_changed(host):
            host.files[ENV] += b"NEW=1\n"

    stage.host.on_start = meddle
    assert mend(stage).last.reason == "undeclared_change"


def dies_with_a_certain_cause(host: FakeHost) -> None:
    """The crash loop goes on until the very stop; loading takes long enough to look at the log."""
    host.log.append("error: invalid argument: --nonsense")
    host.load_seconds = 20.0


def test_what_the_crash_loop_logs_until_it_is_stopped_does_not_count_against_the_new_start() -> None:
    stage = crash_looping()
    stage.host.on_stop = dies_with_a_certain_cause
    assert ended(mend(stage)) == MENDED


def test_nor_does_what_the_failed_change_logged_count_against_the_way_back() -> None:
    stage = Stage()
    stage.host.refuses = lambda argv: "error: invalid argument: --nonsense" if argv[-1] == "8" else None
    stage.host.on_stop = dies_with_a_certain_cause
    end = stage.apply(BETTER)

    assert ended(end) == (4, Outcome.REVERTED, "did_not_start")
    assert stage.serving_as_before()


STARTED_BY_COMMAND = SERVICE.replace(
    "manager: {systemd: {unit: chat.service}}", 'manager: {command: {start: "./chat", cwd: /srv, pid: {port: 8080}}}'
).replace("{unit: chat.service, format: flags}, ", "")


def test_nobody_guesses_as_whom_a_start_command_would_have_to_run() -> None:
    stage = Stage(service_text=STARTED_BY_COMMAND)
    stage.host.process = None
    change = '  - change: {environment: {name: OMP_NUM_THREADS, from: "1", to: "2"}}\n    expect: neutral\n'
    end = mend(stage, extra=change)

    assert ended(end) == (3, Outcome.REFUSED, "other_user")
    assert "start it by hand first" in end.last.text
    assert stage.playbooks.arguments == []
    assert stage.host.saved == {}
