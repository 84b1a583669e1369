"""Several instances: the first one's trial, then the others one at a time; what is not kept goes back alone."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.core.errors import ContactLost, HostCallError, Refused
from changectl.core.history.reading import runs, services
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.recover import exit_code
from changectl.workflow.revert import revert, what_to_revert

THREE = ("gpu1", "gpu2", "gpu3")


def rolled(stage: Stage, policy: str = "", effort: str = "quick") -> RunEnd:
    text = plan_text(BETTER).replace("effort: quick\n", f"effort: {effort}\noutage: 30m\n{policy}")
    return apply(stage.order(text), stage.tools)


def slow_with_the_change(host: FakeHost) -> None:
    host.speed = lambda argv, streams: (200 if argv[-1] == "8" else 20, 5)


def fails_with_the_change(host: FakeHost) -> None:
    host.refuses = lambda argv: "error: out of memory" if argv[-1] == "8" else None


def slots(stage: Stage) -> str:
    """What every instance runs with, in order."""
    return " ".join(host.process.argv[-1] if host.process else "-" for host in stage.hosts.values())


def plays(stage: Stage) -> list[str]:
    return [act.removeprefix("play ") for act in stage.world.trace if act.startswith("play")]


def closed(stage: Stage) -> dict[str, str]:
    instances: dict[str, str] = stage.journal.bodies("step.closed")[-1]["instances"]
    return instances


def test_each_instance_is_kept_by_its_host_before_the_next_is_touched() -> None:
    stage = Stage(THREE)
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, slots(stage)) == (0, Outcome.KEPT, "8 8 8")
    acts = [act for act in stage.world.trace if act.startswith("play") or act.endswith(("capture", "disarm"))]
    assert acts == [
        *[f"door {name} capture" for name in THREE],
        *[act for name in THREE for act in (f"play {name} service", f"play {name} apply", f"door {name} disarm")],
    ]
    assert closed(stage) == dict.fromkeys(THREE, "kept")
    assert all(host.keeper.armed == {} and host.keeper.holder is None for host in stage.hosts.values())


def test_only_the_first_gets_the_whole_trial_where_the_others_are_like_it() -> None:
    stage = Stage(THREE)
    end = rolled(stage, effort="standard")

    assert end.last.outcome is Outcome.KEPT
    phases = {name: [body["phase"] for body in stage.journal.bodies("measure.outcome") if body["host"] == name]
              for name in THREE}  # fmt: skip
    assert len(phases["gpu1"]) > 2
    assert phases["gpu2"] == phases["gpu3"] == ["A", "B"]
    assert [body["verdict"] for body in stage.journal.bodies("verdict")][1:] == ["no_gross_harm", "no_gross_harm"]
    assert stage.journal.bodies("step.closed")[-1]["verdict"] == "unchanged"  # the first one's
    assert [(body["host"], body["look"]) for body in stage.journal.bodies("turn")] == [
        ("gpu1", "trial"), ("gpu2", "short"), ("gpu3", "short"),
    ]  # fmt: skip


def test_an_instance_on_other_hardware_gets_a_whole_trial_of_its_own() -> None:
    stage = Stage(THREE)
    stage.hosts["gpu2"].cpus = {"model": "EPYC", "count": 64, "usable": 64}
    rolled(stage, effort="standard")

    turn = stage.journal.bodies("turn")[1]
    assert turn["look"] == "trial"
    assert "64" in turn["unlike"][0]
    measured = [body["host"] for body in stage.journal.bodies("measure.outcome")]
    assert measured.count("gpu2") > measured.count("gpu3") == 2


def test_when_the_first_is_not_kept_no_other_is_touched() -> None:
    stage = Stage(THREE)
    slow_with_the_change(stage.hosts["gpu1"])
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.REVERTED, "regressed")
    assert plays(stage) == ["gpu1 service", "gpu1 apply", "gpu1 restore"]
    assert closed(stage) == {"gpu1": "reverted", "gpu2": "untouched", "gpu3": "untouched"}
    assert stage.serving_as_before()


@pytest.mark.parametrize(
    ("fails", "reason"), [(slow_with_the_change, "regressed"), (fails_with_the_change, "did_not_start")]
)
def test_a_later_one_that_is_not_kept_goes_back_alone(fails: Callable[[FakeHost], None], reason: str) -> None:
    stage = Stage(THREE)
    fails(stage.hosts["gpu2"])
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.KEPT_PARTLY, reason)
    assert slots(stage) == "8 4 4"
    assert closed(stage) == {"gpu1": "kept", "gpu2": "reverted", "gpu3": "untouched"}
    assert [act for act in plays(stage) if act.endswith("restore")] == ["gpu2 restore"]
    assert not [act for act in plays(stage) if act.startswith("gpu3")]
    assert [body["host"] for body in stage.journal.bodies("verify.outcome") if body["verified"]] == ["gpu2"]
    assert all(host.keeper.armed == {} and host.keeper.holder is None for host in stage.hosts.values())


def test_a_later_one_without_evidence_goes_back_alone_with_the_code_for_that() -> None:
    stage = Stage(THREE)
    stage.hosts["gpu2"].requests = 5
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.KEPT_PARTLY, "baseline_invalid")
    assert slots(stage) == "8 4 4"


def test_all_go_back_last_first_where_the_plan_says_so() -> None:
    stage = Stage(THREE)
    slow_with_the_change(stage.hosts["gpu3"])
    end = rolled(stage, "on_partial: revert_all\n")

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.REVERTED, "regressed")
    assert [act for act in plays(stage) if act.endswith("restore")] == [f"{name} restore" for name in reversed(THREE)]
    assert closed(stage) == dict.fromkeys(THREE, "reverted")
    assert stage.serving_as_before()


def test_one_that_is_out_of_reach_before_anything_was_changed_refuses_all() -> None:
    stage = Stage(THREE)
    stage.fail_at(1, lambda: ContactLost("gpu3: no route"), "open gpu3")
    end = rolled(stage)

    assert (end.exit_code, end.last.reason) == (3, "contact_lost")
    assert stage.serving_as_before()
    assert not plays(stage)


def test_one_that_is_out_of_reach_when_its_turn_comes_ends_the_rollout() -> None:
    stage = Stage(THREE)

    def lose(name: str) -> None:
        if name.startswith(("door gpu3", "play gpu3")) and "play gpu2 apply" in stage.world.trace:
            raise ContactLost("gpu3: gone")

    stage.world.before = lose
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.KEPT_PARTLY, "contact_lost")
    assert slots(stage) == "8 8 4"
    assert closed(stage) == {"gpu1": "kept", "gpu2": "kept", "gpu3": "untouched"}


def test_no_instance_is_taken_out_while_another_does_not_answer() -> None:
    stage = Stage(THREE)
    stage.world.before = lambda name: stage.hosts["gpu3"].stop() if name == "door gpu1 disarm" else None
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.KEPT_PARTLY, "neighbour_out")
    assert slots(stage) == "8 4 -"
    assert not [act for act in plays(stage) if act.startswith("gpu2")]


@pytest.mark.parametrize("dies_at", ["door gpu1 release", "door gpu2 disarm", "door gpu3 disarm"])
def test_a_kept_one_that_dies_before_the_rollout_is_over_goes_back(dies_at: str) -> None:
    stage = Stage(THREE)
    stage.world.before = lambda name: stage.hosts["gpu1"].stop() if name == dies_at else None
    end = rolled(stage)

    if "release" in dies_at:
        assert end.last.outcome is Outcome.KEPT  # the rollout was over
        return
    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.KEPT_PARTLY, "died_after_judgement")
    assert closed(stage)["gpu1"] == "reverted"
    assert slots(stage) == ("4 8 4" if dies_at == "door gpu2 disarm" else "4 8 8")


def once_all_are_kept(stage: Stage, act: Callable[[Stage], None]) -> None:
    """Let something happen at the first look that follows the last host's decision."""

    def happen(name: str) -> None:
        if name == "door gpu1 status" and "door gpu3 disarm" in stage.world.trace:
            stage.world.before = lambda _: None
            act(stage)

    stage.world.before = happen


def gone(stage: Stage) -> None:
    raise ContactLost("gpu1: no answer")


def no_answer(stage: Stage) -> None:
    raise HostCallError("gpu1: the call failed", reason="failed")


def signalled(stage: Stage) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    stage.interrupts.check()  # as every real call does while it waits


@pytest.mark.parametrize("policy", ["", "on_partial: revert_all\n"])
@pytest.mark.parametrize("blip", [gone, no_answer, signalled])
def test_a_blip_once_every_host_has_kept_it_changes_nothing_of_that(blip: Callable[[Stage], None], policy: str) -> None:
    stage = Stage(THREE)
    once_all_are_kept(stage, blip)
    end = rolled(stage, policy)

    assert (end.exit_code, end.last.outcome, slots(stage)) == (0, Outcome.KEPT, "8 8 8")
    assert closed(stage) == dict.fromkeys(THREE, "kept")
    told = [note for note in stage.reporter.notes if "could not be looked at once more" in note]
    assert len(told) == (blip is not signalled)


def cannot_be_restored(host: FakeHost) -> None:
    slow_with_the_change(host)

    def refuse(host: FakeHost, call: str) -> None:
        if call == "restore":
            raise HostCallError(f"{host.name}: the disk is gone", reason="io_error")

    host.on_call = refuse


def test_the_kept_ones_serve_on_where_the_one_that_failed_cannot_be_restored() -> None:
    stage = Stage(THREE)
    cannot_be_restored(stage.hosts["gpu3"])
    end = rolled(stage, "on_partial: revert_all\n")

    assert (end.exit_code, end.last.outcome) == (6, Outcome.REVERT_FAILED)
    assert [act for act in plays(stage) if act.endswith("restore")] == ["gpu3 restore"]
    assert closed(stage) == {"gpu1": "kept", "gpu2": "kept", "gpu3": "revert_failed"}
    assert "gpu1, gpu2: runs on the change" in end.last.text


def test_a_kept_one_that_died_goes_back_before_those_that_serve() -> None:
    stage = Stage(THREE)
    once_all_are_kept(stage, lambda stage: stage.hosts["gpu1"].stop())
    end = rolled(stage, "on_partial: revert_all\n")

    assert end.last.outcome is Outcome.REVERTED
    assert [act for act in plays(stage) if act.endswith("restore")] == [
        f"{n} restore" for n in ("gpu1", "gpu3", "gpu2")
    ]


@pytest.mark.parametrize("moment", ["door gpu1 disarm", "journal turn"])
def test_an_interrupt_between_two_instances_leaves_what_is_kept(moment: str) -> None:
    stage = Stage(THREE)

    def interrupt(name: str) -> None:
        if name == moment and slots(stage).startswith("8"):
            stage.world.before = lambda _: None
            os.kill(os.getpid(), signal.SIGINT)

    stage.world.before = interrupt
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (130, Outcome.KEPT_PARTLY, "interrupted")
    assert slots(stage) == "8 4 4"
    assert closed(stage)["gpu1"] == "kept"
    assert stage.journal.bodies("run.closed")[-1]["exit_code"] == 130


def test_applying_the_plan_again_goes_on_with_the_others() -> None:
    stage = Stage(THREE)
    fails_with_the_change(stage.hosts["gpu2"])
    rolled(stage)
    stage.hosts["gpu2"].refuses = lambda argv: None
    before = len(stage.world.trace)
    end = rolled(stage)

    assert (end.exit_code, end.last.outcome, slots(stage)) == (0, Outcome.KEPT, "8 8 8")
    assert not [act for act in stage.world.trace[before:] if act.startswith("play gpu1")]
    assert closed(stage) == {"gpu1": "nothing_to_do", "gpu2": "kept", "gpu3": "kept"}


def test_status_shows_the_mix_until_a_later_run_makes_all_equal() -> None:
    stage = Stage(THREE)
    assert mixed(stage) == []
    fails_with_the_change(stage.hosts["gpu2"])
    rolled(stage)
    assert mixed(stage) == [("R1", {"8": ["gpu1"], "4": ["gpu2", "gpu3"]})]

    stage.hosts["gpu2"].refuses = lambda argv: None
    rolled(stage)
    assert mixed(stage) == []
    take_back(stage, "R2")
    assert mixed(stage) == [("R1", {"8": ["gpu1"], "4": ["gpu2", "gpu3"]})]
    take_back(stage, "R1")
    assert mixed(stage) == []


def mixed(stage: Stage) -> list[tuple[str, dict[str | None, list[str]]]]:
    found = services(runs(stage.journal.lines))
    return [(mix.run, mix.by_value) for status in found for mix in status.mixes]


def take_back(stage: Stage, run: str) -> None:
    order = what_to_revert(run, stage.journal.events(run), "a test", stage.journal.lines)
    _, ending = revert(order, stage.placed, None, stage.tools)
    assert ending.outcome is Outcome.REVERTED


def test_a_revert_takes_back_the_kept_instances_alone_last_first() -> None:
    stage = Stage(THREE)
    slow_with_the_change(stage.hosts["gpu3"])
    rolled(stage)
    before = len(stage.world.trace)
    take_back(stage, "R1")

    assert stage.serving_as_before()
    acts = [act for act in stage.world.trace[before:] if act.startswith("play")]
    assert acts == ["play gpu2 restore", "play gpu1 restore"]


@pytest.mark.parametrize("policy", ["", "on_partial: revert_all\n"])
@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_wherever_a_rollout_was_cut_off_its_hosts_decide(policy: str, acted: bool) -> None:
    whole = Stage(THREE)
    rolled(whole)
    decisive = ("turn", "disarm", " apply", "restore", ".closed", "release")
    calls = enumerate(whole.world.trace, 1)
    for number in [at for at, call in calls if at % 29 == 1 or any(word in call for word in decisive)]:
        stage = Stage(THREE)
        stage.world.before = die_before(stage.world, lambda _, seen, at=number: seen >= at)  # type: ignore[misc]
        with pytest.raises(Killed):
            rolled(stage, policy)
        stage.world.before = lambda name: None
        if acted:
            for host in stage.hosts.values():
                host.lease_runs_out()
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        decided = {name: host.keeper.decided.get("R1.1", {}) for name, host in stage.hosts.items()}
        kept = [name for name, decision in decided.items() if decision.get("outcome") == "kept"]
        over = bool(stage.journal.bodies("step.closed"))
        ending = settle(stage)

        stays = kept if over or not policy or len(kept) == len(THREE) else []
        where = (number, stage.world.trace[number - 1], ending)
        wanted = Outcome.KEPT if len(stays) == len(THREE) else Outcome.KEPT_PARTLY if stays else None
        assert wanted in (ending.outcome, None), where
        assert slots(stage) == " ".join("8" if name in stays else "4" for name in THREE), where
        assert exit_code(ending) == 0, where
        assert all(host.keeper.armed == {} and host.keeper.holder is None for host in stage.hosts.values()), where
        if stage.journal.bodies("step.closed"):
            assert [name for name, end in closed(stage).items() if end == "kept"] == stays, where


def cut_off_at_the_second(policy: str = "") -> Stage:
    """The first is kept, the second was judged good and not decided, the third not touched."""
    stage = Stage(THREE)
    stage.world.before = die_before(
        stage.world, lambda name, _: name == "journal disarm.intent" and slots(stage).startswith("8 8")
    )
    with pytest.raises(Killed):
        rolled(stage, policy)
    stage.world.before = lambda name: None
    return stage


def test_a_rollout_for_all_or_none_is_not_kept_in_part_by_recover() -> None:
    stage = cut_off_at_the_second("on_partial: revert_all\n")
    with pytest.raises(Refused, match="gpu3: it was not changed yet") as refused:
        settle(stage, go_on=True)

    assert refused.value.reason == "not_judged"
    assert not stage.journal.bodies("step.closed")
    assert settle(stage).outcome is Outcome.REVERTED
    assert stage.serving_as_before()


def test_recover_leaves_a_kept_one_serving_where_the_other_cannot_be_restored() -> None:
    stage = cut_off_at_the_second("on_partial: revert_all\n")
    cannot_be_restored(stage.hosts["gpu2"])
    ending = settle(stage)

    assert (exit_code(ending), ending.outcome) == (6, Outcome.REVERT_FAILED)
    assert closed(stage) == {"gpu1": "kept", "gpu2": "revert_failed", "gpu3": "untouched"}
    assert slots(stage).startswith("8")


def test_recover_of_a_cut_off_revert_leaves_alone_what_the_run_never_kept() -> None:
    stage = Stage(THREE)
    fails_with_the_change(stage.hosts["gpu2"])
    rolled(stage)
    starts = {name: host.starts for name, host in stage.hosts.items()}
    stage.world.before = die_before(stage.world, lambda name, _: name == "play gpu1 restore")
    with pytest.raises(Killed):
        take_back(stage, "R1")
    stage.world.before = lambda name: None
    ending = settle(stage, "R2")

    assert ending.outcome is Outcome.REVERTED
    assert stage.serving_as_before()
    assert [name for name, host in stage.hosts.items() if host.starts != starts[name]] == ["gpu1"]


def test_what_was_judged_on_the_second_can_be_kept_and_the_third_stays_as_it_is() -> None:
    stage = cut_off_at_the_second()
    ending = settle(stage, go_on=True)

    assert ending.outcome is Outcome.KEPT_PARTLY
    assert slots(stage) == "8 8 4"
    assert closed(stage) == {"gpu1": "kept", "gpu2": "kept", "gpu3": "untouched"}
