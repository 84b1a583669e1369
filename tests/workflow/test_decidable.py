"""A plan whose limits its effort cannot decide on a host is refused before any start, unless it accepts that."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflow.stage import BETTER, Stage, plan_text
from tests.workflow.test_calibrate import calibrated
from tests.workflow.test_calibrate import found_by as calibrations
from tests.workflow.test_refused import assert_untouched
from tests.workflow.test_trial import GAIN, SAME, carried_out, plan

from changectl.core.lifecycle import Outcome
from changectl.core.trial.noise_learned import Learned
from changectl.core.trial.noise_model import Spread
from changectl.workflow.preview import preview, would_proceed

ACCEPTED = "accept_undecided: true\nsteps:"


def on_a_noisy_host(df: float = 12) -> Stage:
    """What is known of its host is that its figures differ by 8 % from phase to phase."""
    known = Stage()
    calibrated(known)
    stage = Stage()
    (found,) = calibrations(known)
    noisy = {name: Spread(0.08**2, df) for name in found.spreads}
    usual = dict.fromkeys(found.spreads, 100.0)
    stage.memory.noise = [Learned(found.at, found.alike, noisy, usual=usual)]
    return stage


def decidable(stage: Stage) -> dict[str, Any]:
    (results,) = [body["results"] for body in stage.journal.bodies("precheck")]
    return next(dict(one) for one in results if one["name"] == "decidable")


def test_it_is_refused_with_figures_before_anything_is_started() -> None:
    stage = on_a_noisy_host()
    end = carried_out(stage, plan(SAME))

    assert_untouched(stage, 3, end, "undecidable")
    assert "a margin of 5%, and 4 pairs decide " in end.last.text
    assert "no effort is enough for all of it" in end.last.text
    assert "`accept_undecided: true`" in end.last.text


def test_the_preview_says_that_it_would_be_refused() -> None:
    stage = on_a_noisy_host()
    steps = preview(stage.order(plan(SAME)), stage.tools)
    assert not would_proceed(steps)


def test_who_accepts_it_gets_the_trial_and_it_is_on_record() -> None:
    stage = on_a_noisy_host()
    end = carried_out(stage, plan(BETTER, GAIN).replace("steps:", ACCEPTED))

    assert end.last.outcome is not Outcome.REFUSED
    assert stage.journal.bodies("run.opened")[-1]["accept_undecided"] is True
    found = decidable(stage)
    assert (found["level"], found["state"]) == ("advice", "failed")
    assert "The plan accepts that" in found["detail"]


def test_a_host_of_which_little_is_known_refuses_nothing() -> None:
    stage = on_a_noisy_host(df=4)
    end = carried_out(stage, plan(BETTER, GAIN))

    assert end.last.outcome is not Outcome.REFUSED
    found = decidable(stage)
    assert (found["level"], found["state"]) == ("advice", "failed")
    assert found["detail"].startswith("taking a guess for this host's noise")


def test_the_shipped_defaults_are_enough_for_a_host_that_nobody_knows() -> None:
    stage = Stage()
    carried_out(stage, plan(SAME))
    assert decidable(stage)["state"] == "passed"


@pytest.mark.parametrize("slots", [BETTER])
def test_a_quick_look_that_sees_gross_harm_alone_is_not_asked_for_more(slots: int) -> None:
    stage = on_a_noisy_host()
    assert stage.apply(slots).last.outcome is Outcome.KEPT
    assert decidable(stage)["state"] == "not_applicable"
    assert "effort: quick" in plan_text(slots)


def test_a_calibration_of_such_a_host_is_not_refused() -> None:
    stage = on_a_noisy_host()
    assert calibrated(stage).last.outcome is Outcome.KEPT
    assert decidable(stage)["state"] == "not_applicable"
