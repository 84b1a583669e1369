"""The way back touches only what the run wrote, shuts out what still acts, and never leaves the service stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from tests.workflow import fake_plays
from tests.workflow.fake_host import ENV, UNIT, FakeHost
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ContactLost, HostCallError
from changectl.core.lifecycle import Outcome


def test_a_file_of_somebody_else_neither_stops_the_way_back_nor_is_touched_by_it() -> None:
    stage = Stage()

    def edit(host: FakeHost, call: str) -> None:
        if call == "evidence":
            host.files[ENV] += b"THEIRS=1\n"

    stage.host.on_call = edit
    end = stage.apply(WORSE)

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert f"{ENV} was changed by somebody else" in end.last.text
    assert b"--parallel 4\n" in stage.host.files[UNIT]
    assert stage.host.files[ENV].endswith(b"THEIRS=1\n")
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "4"
    assert stage.playbooks.arguments[-1]["changectl_only"] == [UNIT]


def edited_while_stopping(edit: Callable[[bytes], bytes]) -> tuple[Stage, Any]:
    stage = Stage()

    def act(host: FakeHost) -> None:
        if b"--parallel 1\n" in host.files[UNIT]:
            host.files[UNIT] = edit(host.files[UNIT])

    stage.host.on_stop = act
    stage.host.reported = lambda argv: {"total_slots": 4}
    return stage, stage.apply(WORSE)


def test_an_edit_of_our_very_lines_needs_a_person_and_the_service_runs_all_the_same() -> None:
    stage, end = edited_while_stopping(lambda data: data.replace(b"--parallel 1\n", b"--parallel 9\n"))

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_FAILED)
    assert b"--parallel 9\n" in stage.host.files[UNIT]
    assert stage.host.process is not None


def test_an_edit_of_other_lines_stays_and_a_person_hears_that_only_our_part_went_back() -> None:
    stage, end = edited_while_stopping(lambda data: data + b"# mine\n")

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert "what the run had written there is taken back, and the rest stays as they left it" in end.last.text
    assert stage.host.files[UNIT].endswith(b"# mine\n")
    assert b"--parallel 4\n" in stage.host.files[UNIT]
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "4"


def test_a_job_that_writes_its_own_version_again_after_the_proof_began_is_noticed() -> None:
    stage = Stage()
    looks = []

    def job(host: FakeHost, call: str) -> None:
        if call == "verify":
            looks.append(call)
            if len(looks) == 2:
                host.files[UNIT] = host.files[UNIT].replace(b"--parallel 4\n", b"--parallel 1\n")

    stage.host.on_call = job
    end = stage.apply(WORSE)

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_UNVERIFIED)
    assert f"{UNIT} was written again by something else right after it was restored" in end.last.text
    assert stage.journal.bodies("verify.outcome")[-1]["files"][UNIT] is False


def test_a_play_that_lost_its_contact_may_not_act_after_the_way_back_began() -> None:
    stage = Stage()
    orphan: list[Mapping[str, Any]] = []

    def lose(host: FakeHost, call: str) -> None:
        if call == "apply":
            orphan.append(stage.playbooks.arguments[-1])
            raise ContactLost("gpu1: gone in mid-play")

    stage.host.on_call = lose
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome) == (5, Outcome.REVERTED)
    with pytest.raises(HostCallError) as caught:
        fake_plays.play(stage.host, "apply", orphan[0])
    assert caught.value.reason == "stale_generation"
    assert stage.serving_as_before()
    assert stage.journal.bodies("restore.intent")[0]["generation"] == 2


def test_the_generation_goes_above_the_one_that_the_host_has_seen() -> None:
    stage = Stage()

    def overtake(host: FakeHost, call: str) -> None:
        if call == "evidence":
            host.generations["R1.1"] = 7

    stage.host.on_call = overtake
    assert stage.apply(WORSE).last.outcome is Outcome.REVERTED
    assert stage.playbooks.arguments[-1]["changectl_generation"] == 8


def test_a_door_that_does_not_tell_the_generation_does_not_keep_it_from_growing() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "door gpu1 generation")
    assert stage.apply(WORSE).last.outcome is Outcome.REVERTED
    assert stage.playbooks.arguments[-1]["changectl_generation"] == 2


@pytest.mark.parametrize("call", ["door gpu1 status", "journal restore.outcome"])
def test_what_fails_after_the_restore_leaves_it_unproven_not_undone(call: str) -> None:
    stage = Stage()
    broken = False

    def fail(name: str) -> None:
        nonlocal broken
        broken = broken or name == "journal restore.intent"
        if name == call and (broken or (name.startswith("door") and "journal evidence.outcome" in stage.world.trace)):
            raise HostCallError("gone", reason="io_error")

    stage.world.before = fail
    # A record that cannot be written is forgiven on the way back; what cannot be watched is not proven.
    expected = Outcome.REVERT_UNVERIFIED if call.startswith("door") else Outcome.REVERTED
    end = stage.apply(WORSE)

    assert end.last.outcome is expected
    assert stage.serving_as_before()


def test_the_evidence_is_asked_from_where_the_log_ended_and_for_the_log_of_this_runs_own_start() -> None:
    stage = Stage()
    stage.host.log.append("old")
    asked: list[Mapping[str, Any]] = []
    evidence = stage.host.call_evidence

    def remember(args: Mapping[str, Any]) -> dict[str, Any]:
        asked.append(args)
        return {**evidence(args), "missing": {"pressure_io": "not in this kernel"}}

    stage.host.call_evidence = remember  # type: ignore[method-assign]  # the fake's own answer, remembered
    stage.apply(WORSE)

    assert (asked[0]["run"], asked[0]["cursor"]) == ("R1.1", "1")
    assert stage.journal.bodies("evidence.outcome")[0]["missing"]["pressure_io"] == "not in this kernel"


def test_the_snapshot_of_an_untouched_host_is_forgotten_after_the_end_is_on_record() -> None:
    stage = Stage()
    stage.host.restorable = False
    stage.apply(BETTER)

    trace = stage.world.trace
    assert trace.index("journal step.closed") < trace.index("journal tidy.intent") < trace.index("door gpu1 forget")
    assert stage.journal.bodies("tidy.outcome") == [
        {"host": "gpu1", "call": "forget", "folder": "R1.1", "ok": True}
    ]  # fmt: skip


def test_a_tidying_that_fails_is_on_record_and_changes_nothing() -> None:
    stage = Stage()
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "door gpu1 cleanup")
    assert stage.apply(BETTER).exit_code == 0
    assert stage.journal.bodies("tidy.outcome")[0]["ok"] is False


def test_a_stop_waits_longer_than_the_manager_itself() -> None:
    stage = Stage()
    stage.apply(BETTER)
    assert stage.playbooks.arguments[0]["changectl_service"]["stop_timeout"] == 92


def test_a_host_that_was_started_anew_in_the_middle_of_the_way_back_is_taken_over_and_proven() -> None:
    stage = Stage()
    cut = False

    def power_cut(name: str) -> None:
        """Right when the run is to be taken over for the way back; at boot the host restores itself."""
        nonlocal cut
        if name == "door gpu1 lease" and stage.journal.bodies("verdict") and not cut:
            cut = True
            stage.host.lease_runs_out()
            raise ContactLost("gpu1 does not answer")

    stage.world.before = power_cut
    end = stage.apply(WORSE)

    assert cut
    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "regressed", 4)
    assert stage.serving_as_before()
    assert stage.journal.bodies("host.acted")
    assert stage.host.keeper.armed == {}
