"""`plan` tells what apply would do, and does nothing."""

from __future__ import annotations

import pytest
from tests.workflow.fake_host import UNIT
from tests.workflow.stage import BETTER, Stage, plan_text
from tests.workflow.test_traffic import Behind

from changectl.core.cost import Span, Spent, StartCost
from changectl.core.errors import ContactLost
from changectl.core.rollout import in_turn
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

    assert (alone.starts, alone.measuring_seconds) == (1, Span(40.0, 40.0))
    assert (both.starts, both.measuring_seconds) == (2, Span(80.0, 80.0))
    assert alone.load_seconds is None


def test_a_preview_says_that_all_are_judged_by_live_traffic_where_no_load_is_sent() -> None:
    stage = Stage(("gpu1", "gpu2"))
    text = plan_text(BETTER).replace("effort: quick", "effort: {observe: 5m}")
    (step,) = preview(stage.order(text), stage.tools)

    assert [one.look for one in step.instances] == ["live", "live"]
    assert (step.all_starts, step.measuring_seconds) == (2, Span(1200.0, 1200.0))
    order = in_turn([(one.instance, one.look) for one in step.instances])
    assert order == "gpu1 by what is live there, then gpu2 by what is live there"


def test_a_preview_reckons_with_what_the_service_took_lately() -> None:
    stage = Stage()
    stage.memory.costs = Spent(starts=[3.1, 3.4], ways_back=[6.6], phases=[12.0, 15.0])
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)

    assert step.measuring_seconds == Span(24.0, 30.0)
    assert step.load_seconds == StartCost(Span(3.1, 3.4), Span(6.6, 6.6))


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


def test_what_keeps_an_instance_from_leaving_service_is_told_and_nothing_is_switched() -> None:
    stage = Behind()
    stage.balancer.unreachable.add("gpu2")
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)
    checks = {one.instance: {check.name: check for check in one.checks} for one in step.instances}

    assert not would_proceed([step])
    assert "gpu1:8080 is the last healthy member" in checks["gpu1"]["out_of_service"].detail
    assert checks["gpu1"]["out_of_service"].figure == "nginx on lb1"
    assert stage.balancer.file == stage.balancer.before
    assert stage.world.acts() == []
    assert all(door.closed for door in stage.doors.opened)


def test_a_plan_that_lets_users_notice_it_asks_nobody_who_serves_meanwhile() -> None:
    stage = Behind()
    stage.balancer.unreachable.add("gpu2")
    steps = preview(stage.order(plan_text(BETTER).replace("effort: quick", "effort: quick\noutage: 30m")), stage.tools)

    found = [check for check in steps[0].instances[0].checks if check.name == "out_of_service"]
    assert [(check.state, "may" in check.detail or "allows" in check.detail) for check in found] == [("passed", True)]


TWO_STEPS = """\
version: 1
service: chat
reason: a story
effort: quick
steps:
  - change: {parameter: {name: parallel, from: 4, to: 8}}
    expect: neutral
  - change: {parameter: {name: parallel, from: 8, to: 16}}
    expect: neutral
"""


def test_a_step_asserts_what_the_step_before_it_leaves_behind() -> None:
    stage = Stage()
    first, second = preview(stage.order(TWO_STEPS), stage.tools)

    assert would_proceed([first, second])
    assert (first.instances[0].after_steps, second.instances[0].after_steps) == ((), (1,))
    assert "--parallel 8" in second.instances[0].diff
    assert "--parallel 16" in second.instances[0].diff
    assert "--parallel 4" not in second.instances[0].diff
    assert str(second.instances[0].three.file) == "'4'"  # as it is now
    assert stage.unchanged()


def test_what_no_earlier_step_changes_is_asserted_against_the_present() -> None:
    stage = Stage()
    text = TWO_STEPS.replace("parallel, from: 8, to: 16", "ctx-size, from: 512, to: 1024")
    _, second = preview(stage.order(text), stage.tools)
    assert "ctx-size is absent" in second.refusal


def test_a_second_step_that_asserts_the_present_is_refused_as_apply_would_refuse_it() -> None:
    stage = Stage()
    _, second = preview(stage.order(TWO_STEPS.replace("from: 8", "from: 4")), stage.tools)
    assert "parallel is 8" in second.refusal


def test_a_second_step_in_the_same_file_stands_on_top_of_the_first() -> None:
    stage = Stage()
    text = TWO_STEPS.replace("parallel, from: 8, to: 16", "batch-size, to: 64")
    _, second = preview(stage.order(text), stage.tools)
    (instance,) = second.instances
    assert instance.after_steps == (1,)
    assert "+ExecStart=/opt/llama-server --model /srv/m.gguf --parallel 8 --batch-size 64" in instance.diff


def test_rules_between_settings_are_held_against_what_the_steps_before_set() -> None:
    stage = Stage()
    text = TWO_STEPS.replace("parallel, from: 4, to: 8", "batch-size, to: 64")
    text = text.replace("parallel, from: 8, to: 16", "ubatch-size, to: 128")
    first, second = preview(stage.order(text), stage.tools)
    failed = [[check.name for check in step.instances[0].checks if check.refuses] for step in (first, second)]
    assert ["cross_rules" in names for names in failed] == [False, True]


def test_what_users_notice_is_told() -> None:
    (step,) = preview(Stage().order(plan_text(BETTER)), Stage().tools)
    assert "requests that come while the instance restarts fail" in step.traffic


def test_a_model_on_a_read_only_file_system_is_no_reason_to_refuse() -> None:
    stage = Stage()
    stage.host.read_only = ("/srv/m.gguf",)
    assert would_proceed(preview(stage.order(plan_text(BETTER)), stage.tools))
    stage.host.read_only = (UNIT,)
    assert not would_proceed(preview(stage.order(plan_text(BETTER)), stage.tools))
