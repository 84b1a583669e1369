"""`changectl calibrate`: the saved configuration against itself; nothing is written, the next trial knows its host."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.workflow.crash import Killed, die_before, settle
from tests.workflow.fake_host import ENV, FakeHost
from tests.workflow.stage import BETTER, Stage
from tests.workflow.test_refused import assert_untouched
from tests.workflow.test_trial import GAIN, at_call, carried_out, letters, plan

from changectl.core.declared.calibration import calibration_plan
from changectl.core.errors import ContactLost, LeftToHost, Refused
from changectl.core.history.reading import run_story, runs, services
from changectl.core.lifecycle import Outcome
from changectl.core.trial.calibration import Calibration
from changectl.core.trial.noise_learned import Learned
from changectl.reports import ending, history, show
from changectl.reports._blocks import Heading, Line
from changectl.workflow.apply import Order, RunEnd, apply
from changectl.workflow.extend import what_to_extend
from changectl.workflow.preview import preview
from changectl.workflow.recover import exit_code
from changectl.workflow.revert import later_run, what_to_revert

HALF_AN_HOUR = 1800.0
BY_NEED = Calibration()


def order_of(stage: Stage, calibration: Calibration = BY_NEED, outage: float | None = HALF_AN_HOUR) -> Order:
    order = stage.order(plan(BETTER))
    wanted = calibration_plan("chat", calibration, outage, "calibration")
    return replace(order, plan=wanted, plan_file="chat.yml", plan_text="", checks={}, calibration=calibration)


def calibrated(stage: Stage, calibration: Calibration = BY_NEED, outage: float | None = HALF_AN_HOUR) -> RunEnd:
    return apply(order_of(stage, calibration, outage), stage.tools)


def found_by(stage: Stage) -> list[Learned]:
    """What is on record as learned, as the store reads it."""
    return [
        Learned.from_json(event.body["noise"], event.at, event.run)
        for event in stage.journal.lines
        if event.kind == "calibration"
    ]


def unsteady(host: FakeHost) -> None:
    """Every start is a little slower or faster than the one before, as on real hosts."""
    host.speed = lambda argv, streams, own=host: (400 + (own.starts * 7) % 11, 5)  # type: ignore[misc]


def test_every_phase_is_a_fresh_start_of_the_saved_configuration_and_nothing_is_written() -> None:
    stage = Stage()
    end = calibrated(stage)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.KEPT, "calibrated", 0)
    assert letters(stage) == "A" * 12
    assert [body["fresh_start"] for body in stage.journal.bodies("measure.outcome")] == [True] * 12
    assert {act for act in stage.world.trace if act.startswith("play")} == {"play gpu1 service", "play gpu1 restore"}
    assert stage.journal.bodies("write.intent") == stage.journal.bodies("verdict") == []
    assert stage.serving_as_before()


def test_it_is_saved_and_armed_before_the_first_start_and_proven_before_it_is_disarmed() -> None:
    stage = Stage()
    calibrated(stage, Calibration(pairs=2))

    wanted = ("capture.intent", "precheck", "arm.intent", "restart.intent", "measure.intent", "calibration",
              "restore.intent", "verify.intent", "disarm.intent", "step.closed")  # fmt: skip
    acts = [act.removeprefix("journal ") for act in stage.world.trace if act.startswith("journal")]
    assert [act for act in acts if act in wanted] == [
        "capture.intent", "precheck", "restart.intent", "arm.intent", "measure.intent",
        *["restart.intent", "measure.intent"] * 3,
        "calibration", "restore.intent", "verify.intent", "disarm.intent", "step.closed",
    ]  # fmt: skip
    assert stage.host.keeper.decided["R1.1"]["outcome"] == "reverted"
    assert (stage.host.keeper.armed, stage.host.keeper.holder) == ({}, None)


def test_the_next_trial_and_its_preview_know_the_host() -> None:
    stage = Stage()
    calibrated(stage)
    known = Stage()
    known.memory.noise = found_by(stage)

    (told,) = preview(known.order(plan(BETTER, GAIN)), known.tools)
    assert told.sight
    assert not any("uncalibrated" in sentence for sentence in told.sight)
    carried_out(known, plan(BETTER, GAIN))
    verdict = known.journal.bodies("verdict")[-1]
    assert verdict["verdict"] == "improved"
    assert not any(flag["code"] == "uncalibrated" for flag in verdict["flags"])
    assert verdict["terms"]["noise"]["measured"]["rps_ok at normal"]["df"] == 10


def test_the_price_is_said_before_the_first_start_and_what_was_learned_at_the_end() -> None:
    stage = Stage()
    unsteady(stage.host)
    said: list[int] = []
    stage.host.on_start = lambda host: said.append(len(stage.reporter.notes))
    end = calibrated(stage)

    price = stage.reporter.notes[said[0] - 1]
    assert "6 pairs: 12 phases, each with a start" in price
    assert "uncalibrated" in price
    assert "with a standard trial, before: a regression of " in end.last.text
    assert "(uncalibrated: 1 % between phases is a guess); now: a regression of " in end.last.text
    (body,) = stage.journal.bodies("calibration")
    assert (body["before"]["source"], body["after"]["source"]) == ("uncalibrated", "calibrated")
    assert body["after"]["visible"] < body["before"]["visible"]


def test_a_host_that_is_known_well_enough_is_left_alone() -> None:
    stage = Stage()
    calibrated(stage)
    again = Stage()
    again.memory.noise = found_by(stage)
    end = calibrated(again)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.KEPT, "nothing_to_do", 0)
    assert again.host.starts == 0
    assert again.journal.bodies("capture.intent") == []

    assert calibrated(again, Calibration(pairs=2)).last.reason == "calibrated"  # a person wants more


def test_what_is_known_a_little_is_completed() -> None:
    stage = Stage()
    calibrated(stage, Calibration(pairs=3))
    more = Stage()
    more.memory.noise = found_by(stage)
    calibrated(more)

    assert found_by(stage)[0].spreads["rps_ok at normal"].df == 4
    assert letters(more) == "A" * 8


def test_one_host_of_each_kind_is_measured_one_after_the_other() -> None:
    stage = Stage(("gpu1", "gpu2", "gpu3"))
    stage.hosts["gpu3"].cpus = {"model": "other", "count": 2, "usable": 2}
    end = calibrated(stage, Calibration(pairs=2))

    assert (end.last.outcome, end.exit_code) == (Outcome.KEPT, 0)
    assert [body["host"] for body in stage.journal.bodies("calibration")] == ["gpu1", "gpu3"]
    assert {name: host.starts for name, host in stage.hosts.items()} == {"gpu1": 4, "gpu2": 0, "gpu3": 4}
    decided = [act for act in stage.world.trace if act.startswith("play") or act.endswith("disarm")]
    assert decided.index("door gpu1 disarm") < decided.index("play gpu3 service")
    assert stage.serving_as_before()


def test_a_second_kind_of_host_is_not_taken_out_while_another_instance_does_not_answer() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu2"].cpus = {"model": "other", "count": 2, "usable": 2}
    at_call(stage, "disarm", 1, lambda host: None)
    stage.hosts["gpu1"].on_call = lambda host, call: host.stop() if call == "disarm" else None
    end = calibrated(stage, Calibration(pairs=2))

    assert (end.last.outcome, end.last.reason) == (Outcome.REFUSED, "neighbour_out")
    assert stage.hosts["gpu2"].starts == 0


# -- what refuses it -------------------------------------------------------------------------------------------------
def not_told(stage: Stage) -> None:
    stage.host.cpus = {}


def sick(stage: Stage) -> None:
    stage.host.stop()


def edited(stage: Stage) -> None:
    stage.host.files[ENV] = b"OMP_NUM_THREADS=2\n"


def not_restorable(stage: Stage) -> None:
    stage.host.restorable = False


@pytest.mark.parametrize("wrong", [sick, edited, not_restorable])
def test_what_refuses_a_change_refuses_it_too(wrong: Callable[[Stage], None]) -> None:
    stage = Stage()
    wrong(stage)
    end = calibrated(stage)

    assert (end.last.outcome, end.exit_code) == (Outcome.REFUSED, 3)
    assert stage.host.starts == 0
    assert found_by(stage) == []


def test_a_host_of_which_is_not_known_what_it_is_like_is_not_measured() -> None:
    stage = Stage()
    not_told(stage)
    end = calibrated(stage)

    assert_untouched(stage, 3, end, "host_unknown")
    assert "processors" in end.last.text


def test_an_outage_in_which_two_phases_do_not_fit_is_not_even_begun() -> None:
    stage = Stage()
    stage.memory.load = 20.0
    end = calibrated(stage, outage=30.0)

    assert (end.last.outcome, end.last.reason, stage.host.starts) == (Outcome.REFUSED, "outage_too_short", 0)
    assert "the calibration's outage is 30s" in end.last.text


def test_an_unfinished_run_has_to_be_settled_first() -> None:
    stage = Stage()
    stage.memory.cut_off = ["R0"]
    with pytest.raises(Refused):
        calibrated(stage)


# -- what teaches nothing --------------------------------------------------------------------------------------------
def assert_nothing_learned(stage: Stage, end: RunEnd, reason: str) -> None:
    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, reason, 5)
    assert found_by(stage) == []
    assert stage.serving_as_before()


def test_phases_under_other_conditions_teach_nothing() -> None:
    stage = Stage()
    stage.host.on_start = lambda host: setattr(host, "kernel", "6.1" if host.starts < 3 else "6.2")
    assert_nothing_learned(stage, calibrated(stage), "invalid")
    assert letters(stage) == "AAA"  # it ends with the first phase that is of no use


def test_what_was_measured_before_the_conditions_moved_is_learned() -> None:
    stage = Stage()
    stage.host.on_start = lambda host: setattr(host, "kernel", "6.1" if host.starts < 7 else "6.2")
    end = calibrated(stage)

    assert (end.last.outcome, end.last.reason) == (Outcome.KEPT, "calibrated")
    assert "It ended after 6 phases: phase 7 (A) against phase 1 (A): " in end.last.text
    assert found_by(stage)[0].spreads["rps_ok at normal"].df == 4


def test_a_saved_configuration_that_does_not_come_up_again_ends_it() -> None:
    stage = Stage()
    stage.host.refuses = lambda argv: "error: out of memory" if stage.host.starts == 3 else None
    assert_nothing_learned(stage, calibrated(stage), "saved_did_not_start")
    assert stage.journal.bodies("evidence.outcome")[-1]["ok"]


def test_one_phase_unlike_all_others_is_left_out_and_several_teach_nothing() -> None:
    stage = Stage()
    stage.host.speed = lambda argv, streams: (900 if stage.host.starts == 4 else 400, 5)
    end = calibrated(stage)
    assert "Left out: phase 4 (A) was unlike the others" in end.last.text
    assert found_by(stage)[0].spreads["rps_ok at normal"].df == 9

    stage = Stage()
    stage.host.speed = lambda argv, streams: (900 if stage.host.starts in (4, 8) else 400, 5)
    assert_nothing_learned(stage, calibrated(stage), "inconclusive")


def test_an_outage_that_is_used_up_leaves_what_was_measured_until_then() -> None:
    stage = Stage()
    stage.host.load_seconds = 10.0
    end = calibrated(stage, outage=65.0)

    assert end.last.reason == "calibrated"
    assert 4 <= len(letters(stage)) <= 6
    assert stage.serving_as_before()


def test_a_time_has_as_many_phases_as_fit_into_it() -> None:
    stage = Stage()
    end = calibrated(stage, Calibration(seconds=40.0))
    assert (end.last.reason, stage.world.seconds < 60) == ("calibrated", True)

    short = Stage()
    end = calibrated(short, Calibration(seconds=3.0))
    assert_nothing_learned(short, end, "effort_too_short")
    assert "give `--time` more than that" in end.last.text


# -- whatever dies ---------------------------------------------------------------------------------------------------
def calls() -> int:
    stage = Stage()
    calibrated(stage, Calibration(pairs=2))
    return len(stage.world.trace)


@pytest.mark.parametrize("acted", [True, False], ids=["the dead-man was first", "recover was first"])
def test_wherever_the_controller_dies_the_saved_configuration_runs_at_the_end(acted: bool) -> None:
    for number in range(7 if acted else 1, calls() + 1, 13):  # 13 is no divisor of what a phase takes
        stage = Stage()
        stage.world.before = die_before(stage.world, lambda _, seen, at=number: seen >= at)  # type: ignore[misc]
        with contextlib.suppress(Killed):
            calibrated(stage, Calibration(pairs=2))
        stage.world.before = lambda name: None
        if acted:
            stage.host.lease_runs_out()
        if not stage.journal.events("R1") or stage.journal.bodies("run.closed"):
            continue
        settled = settle(stage)

        where = (number, stage.world.trace[number - 1], settled)
        assert settled.outcome in (Outcome.REVERTED, Outcome.ABORTED, Outcome.KEPT), where
        assert exit_code(settled) == 0, where
        assert stage.serving_as_before(), where
        assert (stage.host.keeper.armed, stage.host.keeper.holder) == ({}, None), where
        assert services(runs(stage.journal.lines))[0].standing is None, where


def test_a_service_that_was_stopped_when_the_controller_died_is_brought_back_by_recover() -> None:
    stage = Stage()
    plays = [0]

    def third(name: str, _: int) -> bool:
        plays[0] += name == "play gpu1 service"
        return plays[0] == 3

    stage.world.before = die_before(stage.world, third)
    with contextlib.suppress(Killed):
        calibrated(stage)
    stage.world.before = lambda name: None
    stage.host.stop()  # it was killed between stop and start
    settled = settle(stage)

    assert (settled.outcome, exit_code(settled)) == (Outcome.REVERTED, 0)
    assert stage.serving_as_before()


def test_an_interrupt_ends_it_with_the_saved_configuration_proven() -> None:
    stage = Stage()
    at_call(stage, "measure", 3, lambda host: os.kill(os.getpid(), signal.SIGINT))
    end = calibrated(stage)

    assert (end.last.outcome, end.last.reason, end.exit_code) == (Outcome.REVERTED, "interrupted", 130)
    assert stage.serving_as_before()
    assert found_by(stage) == []


def test_a_host_that_is_lost_for_good_is_left_to_its_dead_man() -> None:
    stage = Stage()

    def lost(host: FakeHost, call: str) -> None:
        if call in ("standing", "verify", "status") and host.starts >= 4:
            raise ContactLost("gpu1 does not answer")

    stage.host.on_call = lost
    with pytest.raises((LeftToHost, ContactLost)):
        calibrated(stage, Calibration(pairs=2))
    stage.host.on_call = lambda host, call: None
    stage.host.lease_runs_out()
    assert settle(stage).outcome is Outcome.REVERTED
    assert stage.serving_as_before()


# -- what others make of it ------------------------------------------------------------------------------------------
def test_it_is_no_change_that_stands_that_can_be_reverted_or_that_stands_in_the_way() -> None:
    stage = Stage()
    stage.apply(BETTER)
    calibrated(stage, Calibration(pairs=2))
    (status,) = services(runs(stage.journal.lines))
    assert status.standing is not None
    assert (status.standing.run, status.last.run, status.mixes) == ("R1", "R2", ())
    assert status.last.calibrates
    first = what_to_revert("R1", stage.journal.events("R1"), "x")
    assert later_run(first, stage.journal.lines) is None
    with pytest.raises(Refused, match="nothing of run R2 was kept"):
        what_to_revert("R2", stage.journal.events("R2"), "x")


def test_people_are_told_what_it_was_and_what_it_brought() -> None:
    stage = Stage()
    end = calibrated(stage, Calibration(pairs=2))
    story = run_story(stage.journal.events("R1"))

    told = "\n".join(
        block.text for block in ending.as_blocks(story, end.exit_code) if isinstance(block, Line | Heading)
    )
    assert "kept: the noise is known now; the saved configuration runs, and that is proven" in told
    assert "step 1: calibration: nothing is changed" in told
    assert "with a standard trial, before: a regression of" in told
    assert "changectl revert" not in "\n".join(map(str, ending.as_blocks(story, end.exit_code)))
    assert "calibration: nothing is changed" in str(history.as_blocks(runs(stage.journal.lines)))
    assert "the noise of its hosts is known" in str(show.as_blocks(story))


def test_it_has_no_trial_to_go_on_with() -> None:
    stage = Stage()
    calibrated(stage, Calibration(pairs=2))
    found: Any = runs(stage.journal.lines)
    with pytest.raises(Refused, match="changed nothing, to learn the noise of its hosts"):
        what_to_extend("R1", stage.journal.events, found, stage.tools.clock.now(), None)
