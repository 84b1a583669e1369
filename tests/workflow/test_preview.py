"""`plan` tells what apply would do, and does nothing."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import UNIT
from tests.workflow.stage import BETTER, Stage, plan_text

from changectl.core.errors import ContactLost
from changectl.workflow.preview import preview, would_proceed


def test_a_preview_shows_the_edit_and_every_check_and_changes_nothing() -> None:
    stage = Stage()
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)
    (instance,) = step.instances

    assert would_proceed([step])
    assert instance.path == UNIT
    assert "--parallel 8" in instance.diff
    assert {result.name for result in instance.checks} > {"restorable", "values_agree", "healthy_now"}
    assert stage.serving_as_before()
    assert stage.host.starts == 0
    assert stage.world.acts() == []
    assert all(door.closed for door in stage.doors.opened)


def test_a_preview_says_how_many_starts_and_how_long() -> None:
    (alone,) = preview(Stage().order(plan_text(BETTER)), Stage().tools)
    stage = Stage(("gpu1", "gpu2"))
    (both,) = preview(stage.order(plan_text(BETTER)), stage.tools)

    assert (alone.starts, alone.measuring_seconds) == (1, 40.0)
    assert (both.starts, both.measuring_seconds) == (2, 80.0)


def test_nothing_to_do_is_seen() -> None:
    stage = Stage()
    (step,) = preview(stage.order(plan_text(4)), stage.tools)
    assert step.instances[0].nothing_to_do


@pytest.mark.parametrize("call", ["open", "door gpu1 inspect"])
def test_a_host_that_does_not_answer_is_a_refusal_not_an_error(call: str) -> None:
    stage = Stage()
    stage.fail_at(1, lambda: ContactLost("gpu1: gone"), call)
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)

    assert "gpu1: gone" in step.refusal
    assert not would_proceed([step])


def test_a_failed_required_check_would_not_proceed() -> None:
    stage = Stage()
    stage.host.model = {}
    steps = preview(stage.order(plan_text(BETTER)), stage.tools)
    assert not would_proceed(steps)
