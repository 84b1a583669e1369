"""The balancer's path: a second way to an instance, named, proven, never mixed with the other one, never replaced."""

from __future__ import annotations

from typing import Any

import pytest
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text

from changectl.core.judging.conditions import Fingerprint, single_difference
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import RunEnd, apply
from changectl.workflow.preview import preview, would_proceed

OWN, THROUGH = "http://127.0.0.1:8080", "http://lb1:8090/gpu1"
BOTH = SERVICE.replace('8080"}', f'8080", through_balancer: "{THROUGH}"' + "}")


def balanced(path: str = "balancer") -> Stage:
    """A service that can be reached through a balancer, whose engine counts what it generates."""
    stage = Stage(service_text=BOTH.replace("{normal: 8 streams}", f"{{normal: 8 streams}}, path: {path}"))
    stage.host.generates = 1.0
    return stage


def phases(stage: Stage) -> list[Any]:
    return stage.journal.bodies("measure.outcome")


def test_the_load_goes_through_the_balancer_and_every_figure_says_so() -> None:
    stage = balanced()
    end = stage.apply(BETTER)

    assert end.exit_code == 0, end.last.text
    assert set(stage.host.sent_to) == {THROUGH}
    assert [body["path"] for body in stage.journal.bodies("measure.intent")] == ["balancer", "balancer"]
    assert {(body["conditions"]["path"], body["conditions"]["endpoint"]) for body in phases(stage)} == {
        ("balancer", THROUGH)
    }


def test_without_a_word_the_load_goes_straight_to_the_instance_and_that_is_on_record_too() -> None:
    stage = Stage()
    stage.apply(BETTER)

    assert set(stage.host.sent_to) == {OWN}
    assert {body["conditions"]["path"] for body in phases(stage)} == {"endpoint"}


def test_a_plan_chooses_the_path_for_itself() -> None:
    stage = balanced("endpoint")
    text = plan_text(BETTER).replace("steps:", "conditions: {path: balancer}\nsteps:")
    assert apply(stage.order(text), stage.tools).exit_code == 0

    assert set(stage.host.sent_to) == {THROUGH}


def test_two_paths_are_never_compared() -> None:
    stage, other = balanced(), balanced("endpoint")
    stage.apply(BETTER)
    other.apply(BETTER)
    one, two = (Fingerprint.from_json(phases(each)[0]["conditions"]) for each in (stage, other))

    assert {found.key for found in single_difference(one, two, set())} == {"endpoint", "path"}


def not_kept(stage: Stage, reason: str, *, written: bool) -> RunEnd:
    end = stage.apply(BETTER)
    assert end.last.reason == reason, end.last.text
    assert end.exit_code == (5 if written else 3)
    assert end.last.outcome is (Outcome.REVERTED if written else Outcome.REFUSED)
    assert stage.serving_as_before()
    return end


def test_where_the_balancer_takes_no_request_in_a_phase_nothing_is_held_against_the_change() -> None:
    stage = balanced()

    def cut(name: str) -> None:
        stage.host.not_taken = 3 if "journal write.outcome" in stage.world.trace else 0

    stage.world.before = cut
    end = not_kept(stage, "path_lost", written=True)

    assert f"through the balancer ({THROUGH}), and 3 of " in end.last.text
    assert "measured on no other path" in end.last.text
    assert set(stage.host.sent_to) == {THROUGH}


@pytest.mark.parametrize(
    ("metrics", "share", "told"),
    [
        (None, 0.5, "tokens were received, and the instance generated"),
        ("nothing_of_use 1\n", 1.0, "does not count the tokens that it generates"),
    ],
)
def test_answers_that_others_may_have_given_are_no_figures_of_the_instance(
    metrics: str | None, share: float, told: str
) -> None:
    stage = balanced()
    stage.host.generates = share
    if metrics is not None:
        counted = stage.host.metrics
        stage.host.metrics = lambda host: metrics if host.sent_to else counted(host)
    end = stage.apply(BETTER)

    assert (end.last.reason, stage.serving_as_before()) == ("path_unproven", True), end.last.text
    assert told in end.last.text
    assert "`through_balancer` has to lead to this instance alone" in end.last.text


def test_the_pre_check_sends_one_request_on_the_path_that_will_be_measured() -> None:
    stage = balanced()
    stage.host.not_taken = 1
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)

    assert not would_proceed([step])
    (found,) = [check for check in step.instances[0].checks if check.name == "caller"]
    assert (found.state, f"{THROUGH} gives gpu1 no answer: connect_refused" in found.detail) == ("failed", True)
