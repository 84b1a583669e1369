"""What one trial finds out about the noise of its host serves the next one."""

from __future__ import annotations

from functools import partial

from tests.workflow.stage import BETTER, Stage
from tests.workflow.test_extend import SHORT, read, undecided
from tests.workflow.test_trial import GAIN, carried_out, plan

from changectl.core.trial.noise_learned import Learned
from changectl.core.trial.noise_model import NOTHING_KNOWN
from changectl.workflow.apply import apply
from changectl.workflow.preview import preview


def found_by(stage: Stage) -> Learned:
    """What the last trial on record found out."""
    body = stage.journal.bodies("verdict")[-1]
    return Learned.from_json(body["noise"], stage.tools.clock.now(), "R1")


def uncalibrated(stage: Stage) -> bool:
    return any(flag["code"] == "uncalibrated" for flag in stage.journal.bodies("verdict")[-1]["flags"])


def test_a_host_that_two_trials_were_made_on_is_calibrated() -> None:
    stage = Stage()
    carried_out(stage, plan(BETTER, GAIN))
    assert uncalibrated(stage)
    assert stage.journal.bodies("verdict")[-1]["terms"]["noise"] == NOTHING_KNOWN.to_json()

    known = Stage()
    known.memory.noise = [found_by(stage)] * 2
    carried_out(known, plan(BETTER, GAIN))
    assert not uncalibrated(known)
    assert known.journal.bodies("verdict")[-1]["terms"]["noise"]["measured"]["rps_ok at normal"]["df"] == 10
    assert known.journal.bodies("verdict")[-1]["verdict"] == "improved"


def test_phases_that_may_not_be_compared_tell_nothing_of_noise() -> None:
    stage = Stage()
    stage.host.on_start = lambda host: setattr(host, "kernel", "6.1" if host.starts < 4 else "6.2")
    carried_out(stage, plan(BETTER, GAIN))
    verdict = stage.journal.bodies("verdict")[-1]
    assert (verdict["verdict"], verdict["noise"]) == ("invalid", None)


def test_what_was_found_on_another_kind_of_host_is_not_taken_over() -> None:
    stage = Stage()
    carried_out(stage, plan(BETTER, GAIN))
    found = found_by(stage)

    other = Stage()
    other.memory.noise = [Learned(found.at, {**found.alike, "processors": ["other", 2, 2]}, found.spreads)] * 2
    carried_out(other, plan(BETTER, GAIN))
    assert uncalibrated(other)


def test_no_look_of_a_trial_takes_the_noise_for_anything_else_than_the_one_before() -> None:
    text = plan(BETTER, GAIN, SHORT)
    stage = undecided(text)
    assumed = stage.journal.bodies("verdict")[-1]["terms"]["noise"]
    stage.memory.noise = [found_by(stage)] * 20  # meanwhile others found out a lot
    apply(stage.order(text), stage.tools, partial(read, stage, "R1", None))

    assert stage.journal.bodies("verdict")[-1]["terms"]["noise"] == assumed


def test_the_preview_says_what_can_be_seen_on_a_host_that_is_known() -> None:
    stage = Stage()
    carried_out(stage, plan(BETTER, GAIN))
    fresh = Stage()
    (before,) = preview(fresh.order(plan(BETTER, GAIN)), fresh.tools)
    fresh.memory.noise = [found_by(stage)] * 2
    (after,) = preview(fresh.order(plan(BETTER, GAIN)), fresh.tools)

    assert all("uncalibrated" in sentence for sentence in before.sight)
    assert not any("uncalibrated" in sentence for sentence in after.sight)
