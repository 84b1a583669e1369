"""A run that was cut off, whose files somebody put right by hand, can be ended without touching its hosts."""

from __future__ import annotations

from tests.workflow.fake_host import UNIT, FakeHost
from tests.workflow.stage import BETTER, Stage

from changectl.core.errors import ContactLost
from changectl.core.lifecycle import Outcome
from changectl.workflow.revert import accept_present, exit_code, revert, what_to_revert


def cut_off(stage: Stage) -> None:
    stage.apply(BETTER)
    stage.journal.lines = [e for e in stage.journal.lines if e.kind not in ("step.closed", "run.closed", "verdict")]


def test_what_somebody_put_there_by_hand_is_accepted_and_the_hosts_stay_as_they_are() -> None:
    stage = Stage()
    cut_off(stage)
    stage.host.files[UNIT] += b"# put right by hand\n"
    digests, starts = stage.host.digests(), stage.host.starts
    order = what_to_revert("R1", stage.journal.events("R1"), "OPS-78")

    refused = revert(order, stage.placed, None, stage.tools)[1]
    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (refused.outcome, refused.reason) == (Outcome.REFUSED, "changed_since")
    assert (exit_code(ending), ending.outcome, ending.reason) == (0, Outcome.KEPT_UNJUDGED, "accepted_present")
    assert (stage.host.digests(), stage.host.starts) == (digests, starts)
    assert stage.journal.bodies("accepted")[-1]["path"] == UNIT
    assert stage.journal.bodies("run.closed")[-1]["outcome"] == "kept_unjudged"


def test_it_is_accepted_although_the_copy_of_what_was_saved_is_lost() -> None:
    stage = Stage()
    cut_off(stage)
    stage.records.snapshots.clear()
    order = what_to_revert("R1", stage.journal.events("R1"), "the key is gone for good")

    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (exit_code(ending), ending.outcome) == (0, Outcome.KEPT_UNJUDGED)
    assert stage.host.keeper.armed == {}
    assert stage.host.keeper.holder is None


def two_cut_off() -> Stage:
    stage = Stage(("gpu1", "gpu2"))
    cut_off(stage)
    return stage


def test_a_host_that_does_not_answer_leaves_all_of_them_as_they_were() -> None:
    stage = two_cut_off()
    order = what_to_revert("R1", stage.journal.events("R1"), "OPS-78")
    stage.hosts["gpu1"].on_call = silent

    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (ending.outcome, stage.journal.bodies("accepted")) == (Outcome.REFUSED, [])
    assert all(host.keeper.decided["R1.1"]["outcome"] == "kept" for host in stage.hosts.values())


def test_where_only_some_hosts_accepted_each_is_named_and_the_run_stays_unsettled() -> None:
    stage = two_cut_off()
    order = what_to_revert("R1", stage.journal.events("R1"), "OPS-78")
    first = order.edits[0].instance
    last = order.edits[-1].instance
    stage.hosts[last].on_call = lambda host, call: silent(host, call) if call == "disarm" else None

    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (exit_code(ending), ending.outcome) == (3, Outcome.REFUSED)
    assert f"accepted on {first}, and not on {last}" in ending.text
    stage.hosts[last].on_call = lambda host, call: None
    assert accept_present(order, stage.placed, stage.tools)[1].outcome is Outcome.KEPT_UNJUDGED


def silent(host: FakeHost, call: str) -> None:
    raise ContactLost(f"{host.name} does not answer")


def test_a_run_with_an_end_cannot_be_settled_like_this() -> None:
    stage = Stage()
    stage.apply(BETTER)
    order = what_to_revert("R1", stage.journal.events("R1"), "by mistake")

    _, ending = accept_present(order, stage.placed, stage.tools)

    assert (exit_code(ending), ending.outcome, ending.reason) == (3, Outcome.REFUSED, "run_finished")


def test_a_plan_that_was_carried_out_already_is_done_although_its_from_is_no_longer_true() -> None:
    stage = Stage()
    stage.apply(BETTER, extra="")
    starts = stage.host.starts
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (0, "nothing_to_do")
    assert stage.host.starts == starts
