"""A controller that dies anywhere: what its hosts and its record say afterwards is enough to give the run its end."""

from __future__ import annotations

import contextlib

import pytest
from tests.workflow.crash import Killed, die_before, killed_at, settle
from tests.workflow.fake_host import UNIT
from tests.workflow.stage import BETTER, WORSE, Stage

from changectl.core.errors import ContactLost, HostCallError, LeftToHost, PersonNeeded, Refused
from changectl.core.lifecycle import Outcome
from changectl.workflow.open_run import open_run
from changectl.workflow.recover import exit_code, recover
from changectl.workflow.revert import accept_present, revert, what_to_revert


def calls(*slots: int) -> int:
    stage = Stage()
    stage.apply(*slots)
    return len(stage.world.trace)


@pytest.mark.parametrize("slots", [BETTER, WORSE])
@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_wherever_the_controller_died_the_run_gets_an_end_that_is_true(slots: int, acted: bool) -> None:
    for number in range(1, calls(slots) + 1):
        stage = killed_at(number, slots)
        if acted:
            stage.host.lease_runs_out()
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        ending = settle(stage)

        where = (number, stage.world.trace[number - 1], ending)
        if ending.outcome is Outcome.KEPT:
            assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept", where
            assert stage.host.process is not None, where
            assert stage.host.process.argv[-1] == str(slots), where
        else:
            assert ending.outcome in (Outcome.REVERTED, Outcome.ABORTED), where
            assert stage.serving_as_before(), where
        assert exit_code(ending) == 0, where
        assert stage.journal.bodies("run.closed")[-1]["outcome"] == ending.outcome, where
        assert stage.host.keeper.armed == {}, where
        assert stage.host.keeper.holder is None, where


def dies_after(stage: Stage, name: str, *slots: int) -> Stage:
    """Let the controller die right after a call, known by its name."""
    stage.world.before = die_before(stage.world, lambda call, _: name in stage.world.trace[:-1])
    with contextlib.suppress(Killed):
        stage.apply(*slots)
    stage.world.before = lambda call: None
    return stage


def test_what_the_host_has_on_record_as_kept_is_kept() -> None:
    stage = dies_after(Stage(), "door gpu1 disarm", BETTER)
    starts = stage.host.starts
    ending = settle(stage)

    assert (ending.outcome, exit_code(ending)) == (Outcome.KEPT, 0)
    assert stage.host.starts == starts
    assert [body["outcome"] for body in stage.journal.bodies("step.closed")] == ["kept"]


def test_what_a_dead_man_did_is_collected_into_the_record() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    stage.host.lease_runs_out()
    starts = stage.host.starts
    settle(stage)

    (acted,) = stage.journal.bodies("host.acted")
    assert (acted["by"], acted["outcome"]) == ("deadman", "restored")
    assert stage.host.starts == starts  # what is back already is proven, not done again


def test_a_late_play_of_the_dead_run_is_refused_by_the_host() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    late = dict(stage.playbooks.arguments[-1])
    settle(stage)

    with pytest.raises(HostCallError, match="taken over"):
        stage.host.play("apply", late)
    assert stage.serving_as_before()


def test_a_host_that_does_not_answer_leaves_the_run_open() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), "open")
    with pytest.raises(ContactLost):
        settle(stage)
    assert not stage.journal.bodies("run.closed")

    assert settle(stage).outcome is Outcome.REVERTED


def test_a_host_that_is_lost_on_the_way_is_left_to_its_dead_man() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    gone = False

    def lose(name: str) -> None:
        nonlocal gone
        gone = gone or name == "journal restore.intent"
        if gone and name.startswith(("door", "play")):
            raise ContactLost("gpu1: gone")

    stage.world.before = lose
    with pytest.raises(LeftToHost):
        settle(stage)
    assert not stage.journal.bodies("run.closed")


def test_a_change_that_was_judged_can_be_kept_if_a_person_says_so_and_it_still_answers() -> None:
    stage = dies_after(Stage(), "journal disarm.intent", BETTER)
    ending = settle(stage, go_on=True)

    assert ending.outcome is Outcome.KEPT
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "kept"


@pytest.mark.parametrize("died_after", ["journal write.outcome", "play gpu1 apply"])
def test_what_was_not_judged_cannot_be_kept(died_after: str) -> None:
    stage = dies_after(Stage(), died_after, BETTER)
    with pytest.raises(Refused, match="not judged good"):
        settle(stage, go_on=True)

    assert "R1.1" in stage.host.keeper.armed
    assert settle(stage).outcome is Outcome.REVERTED


def test_what_was_judged_and_died_since_cannot_be_kept() -> None:
    stage = dies_after(Stage(), "journal disarm.intent", BETTER)
    stage.host.restart()  # another process than the one that was judged
    with pytest.raises(Refused, match="does not run any more"):
        settle(stage, go_on=True)


def test_a_run_that_has_its_end_is_not_touched() -> None:
    stage = Stage()
    stage.apply(BETTER)
    with pytest.raises(Refused, match="has its end already"):
        settle(stage)


def test_what_still_runs_of_the_dead_controller_is_ended_first() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    settle(stage)
    assert stage.world.trace.index("orphans R1") < stage.world.trace.index("play gpu1 restore")


def test_a_run_that_got_its_end_while_recover_waited_is_not_touched_again() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    first = open_run(stage.journal.events("R1"))  # read before the lock was held
    settle(stage)
    stage.apply(BETTER)  # judged and kept meanwhile
    with pytest.raises(Refused, match="has its end already"):
        recover(first, stage.placed, stage.tools)

    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == "8"
    assert len([event for event in stage.journal.events("R1") if event.kind == "run.closed"]) == 1


def test_what_a_person_accepted_is_not_overturned_by_a_later_recover() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    events = stage.journal.events("R1")
    stage.world.before = die_before(stage.world, lambda call, _: call == "journal revert.outcome")
    with contextlib.suppress(Killed):
        accept_present(what_to_revert("R1", events, "put right by hand"), stage.placed, stage.tools)
    stage.world.before = lambda call: None

    endings = [settle(stage, run) for run in ("R1", "R2")]
    assert [ending.outcome for ending in endings] == [Outcome.KEPT_UNJUDGED] * 2
    assert stage.host.process is not None
    assert stage.host.process.argv[-1] == str(WORSE)


def test_a_dead_man_that_is_gone_is_started_again_before_anything_else_is_done() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    stage.host.keeper.keeper_gone = True  # the host was started anew, and nothing there outlived it
    settle(stage)

    assert "changectl_arm" in stage.playbooks.arguments[-1]
    assert stage.serving_as_before()


def cut_off_revert_of_two_steps() -> Stage:
    """Steps 4 -> 6 -> 8 were kept; their revert died when the second step's file was back."""
    stage = Stage()
    stage.apply(6, BETTER)
    events = stage.journal.events("R1")
    stage.world.before = die_before(
        stage.world, lambda call, _: call == "journal verify.intent" and "play gpu1 restore" in stage.world.trace
    )
    with contextlib.suppress(Killed):
        revert(what_to_revert("R1", events, "back"), stage.placed, None, stage.tools)
    stage.world.before = lambda call: None
    return stage


@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_a_revert_of_two_steps_that_was_cut_off_in_the_middle_is_carried_to_its_end(acted: bool) -> None:
    stage = cut_off_revert_of_two_steps()
    assert "R1.2" in stage.host.keeper.armed
    if acted:
        stage.host.lease_runs_out()
    ending = settle(stage, "R2")

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()
    assert stage.host.keeper.armed == {}
    assert stage.host.keeper.holder is None


def test_what_somebody_changed_after_the_dead_man_had_acted_stays() -> None:
    stage = dies_after(Stage(), "journal verdict", BETTER)
    new = stage.host.files[UNIT]
    stage.host.lease_runs_out()
    stage.host.files[UNIT] = new  # another controller applied the very same change, judged it and kept it
    stage.host.restart()
    starts = stage.host.starts
    ending = settle(stage)

    # That the saved configuration runs again cannot be said: a person decides, and nothing is touched.
    assert (ending.outcome, stage.host.starts) == (Outcome.REVERT_UNVERIFIED, starts)
    assert "somebody changed" in ending.text
    assert stage.host.files[UNIT] == new
    assert stage.host.keeper.armed == {}


def test_a_host_whose_armed_record_is_gone_is_not_taken_for_untouched() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    stage.host.keeper.armed.clear()
    ending = settle(stage)

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_a_host_that_cannot_tell_what_was_decided_needs_a_person_and_the_run_stays_open() -> None:
    stage = dies_after(Stage(), "journal verdict", WORSE)
    stage.fail_at(1, lambda: HostCallError("armed.json cannot be read", reason="damaged_state"), "door gpu1 standing")
    with pytest.raises(PersonNeeded, match="changectl recover R1") as needed:
        settle(stage)

    assert needed.value.exit_code == 6
    assert not stage.journal.bodies("run.closed")


def moved_elsewhere(stage: Stage) -> None:
    """Somebody edits the service file: from now on changectl's folder on the hosts is another one."""
    stage.service = stage.service.model_copy(update={"state_dir": "/srv/elsewhere"})


@pytest.mark.parametrize("before", [None, "/srv/state"])
def test_a_run_is_brought_back_from_the_state_folder_that_it_was_saved_in(before: str | None) -> None:
    stage = Stage()
    stage.service = stage.service.model_copy(update={"state_dir": before})
    dies_after(stage, "play gpu1 apply", WORSE)
    assert not stage.unchanged()
    moved_elsewhere(stage)

    ending = settle(stage)

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_a_kept_run_is_reverted_from_the_state_folder_that_it_was_saved_in() -> None:
    stage = Stage()
    stage.apply(BETTER)
    moved_elsewhere(stage)

    _, ending = revert(what_to_revert("R1", stage.journal.events("R1"), "why"), stage.placed, None, stage.tools)

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()


@pytest.mark.parametrize("reason", ["key_missing", "key_exposed", "snapshot_changed"])
def test_a_run_whose_saved_copy_cannot_be_read_here_needs_a_person_and_says_how_it_goes_on(reason: str) -> None:
    stage = dies_after(Stage(), "play gpu1 apply", WORSE)
    stage.fail_at(1, lambda: Refused("the key cannot be read", reason=reason), only="records get_snapshot")

    with pytest.raises(PersonNeeded) as told:
        settle(stage)
    assert (told.value.exit_code, told.value.reason) == (6, reason)
    assert "Mend that, then: changectl recover R1" in str(told.value)
    assert not stage.journal.bodies("run.closed")

    stage.world.before = lambda name: None
    assert settle(stage).outcome is Outcome.REVERTED
    assert stage.serving_as_before()
