"""The load comes from where the service says, or from nowhere: another host is never taken in its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.workflow.fake_caller import ADDRESS, FakeCaller, doors_to, with_caller
from tests.workflow.incident_stage import mend
from tests.workflow.stage import BETTER, SERVICE, Stage, plan_text

from changectl.core.errors import ContactLost, HostCallError, InputError, Refused
from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import apply
from changectl.workflow.preview import preview, would_proceed

TRIED = 1  # the one request of the pre-checks is the first measurement that the caller makes
MEASURED = "door c1 measure"


def checked(stage: Stage) -> dict[str, Any]:
    """What the pre-check of the caller said."""
    (body,) = stage.journal.bodies("precheck")
    found: dict[str, Any] = next(result for result in body["results"] if result["name"] == "caller")
    return found


def conditions(stage: Stage) -> list[dict[str, Any]]:
    return [body["conditions"] for body in stage.journal.bodies("measure.outcome")]


def lost() -> ContactLost:
    return ContactLost("c1: the host program did not answer `measure` in time")


def test_every_phase_is_sent_from_the_caller_and_the_record_says_so() -> None:
    stage, _ = with_caller()
    end = stage.apply(BETTER)

    assert end.exit_code == 0
    assert stage.world.trace.count(MEASURED) == TRIED + 2
    assert "door gpu1 measure" not in stage.world.trace
    assert [body["caller"] for body in stage.journal.bodies("measure.intent")] == ["c1", "c1"]
    for facts in conditions(stage):
        assert (facts["caller"], facts["caller_address"]) == ("c1 (c1)", ADDRESS)
        cpus = '{"count": 2, "model": "EPYC", "usable": 2}'
    assert facts["caller_host"] == {"kernel": "6.1", "cpus": cpus, "boot": "b", "python": "3.11.2"}


def test_on_the_caller_nothing_is_left_and_nothing_but_the_load_is_run() -> None:
    stage, _ = with_caller()
    stage.apply(BETTER)

    asked = {name.rpartition(" ")[2] for name in stage.world.trace if name.startswith("door c1")}
    assert asked == {"hello", "host", "measure"}
    assert not any(name.startswith("play c1") for name in stage.world.trace)
    assert len(doors_to(stage, "c1")) == TRIED + 2
    assert all(door.closed for door in doors_to(stage, "c1"))


def test_while_nothing_is_measured_no_door_to_the_caller_is_open() -> None:
    stage, _ = with_caller()
    seen = []
    stage.world.before = lambda name: (
        seen.append([door.closed for door in doors_to(stage, "c1")]) if name.startswith("play") else None
    )
    stage.apply(BETTER)

    assert seen
    assert all(all(closed) for closed in seen)


def test_without_a_caller_the_instances_own_host_sends_and_the_record_says_so() -> None:
    stage = Stage()
    stage.apply(BETTER)

    assert checked(stage)["state"] == "not_applicable"
    assert checked(stage)["detail"] == "the load comes from the instance's own host"
    assert {facts["caller"] for facts in conditions(stage)} == {"gpu1 (gpu1, the instance's own host)"}
    assert all("caller_host" not in facts for facts in conditions(stage))


def test_a_caller_that_is_the_instances_own_host_needs_no_second_door() -> None:
    stage = Stage(service_text=f"{SERVICE}caller: gpu1\n")
    stage.apply(BETTER)

    assert len(stage.doors.opened) == 1
    assert {facts["caller"] for facts in conditions(stage)} == {"gpu1 (gpu1, the instance's own host)"}


def test_one_instance_calls_the_other_where_the_service_says_so() -> None:
    stage = Stage(("gpu1", "gpu2"), service_text=f"{SERVICE}caller: gpu1\n")
    assert stage.apply(BETTER).exit_code == 0

    assert "door gpu2 measure" not in stage.world.trace


@pytest.mark.parametrize("error", [ContactLost("no route to host"), Refused("the host key is unknown")])
def test_a_caller_that_nobody_reaches_refuses_the_change_before_anything_is_touched(error: Exception) -> None:
    stage, _ = with_caller()
    stage.fail_at(1, lambda: error, "open c1")
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.reason) == (3, "precheck_failed")
    assert checked(stage)["state"] == "failed"
    assert str(error) in end.last.text
    assert "changectl doctor c1" in end.last.text
    assert stage.host.starts == 0


def test_a_caller_on_which_the_generator_does_not_run_refuses_the_change() -> None:
    stage, _ = with_caller()
    error = HostCallError("c1: the load generator ended with status 1: no ssl", reason="generator_failed")
    stage.fail_at(1, lambda: error, MEASURED)
    end = stage.apply(BETTER)

    assert end.exit_code == 3
    assert "no ssl" in end.last.text


def test_a_caller_that_gets_no_answer_refuses_the_change_and_names_the_endpoint() -> None:
    stage, caller = with_caller()
    caller.reaches = False
    end = stage.apply(BETTER)

    assert end.exit_code == 3
    assert "http://127.0.0.1:8080 gives c1 no answer: connect_refused" in end.last.text


def test_the_preview_says_from_where_it_would_be_measured() -> None:
    stage, _ = with_caller()
    (step,) = preview(stage.order(plan_text(BETTER)), stage.tools)
    (instance,) = step.instances
    check = next(check for check in instance.checks if check.name == "caller")

    assert would_proceed([step])
    assert (check.state, check.figure) == ("passed", f"c1 ({ADDRESS})")
    assert all(door.closed for door in stage.doors.opened)


def lost_at(number: int, only: str, stage: Stage) -> None:
    stage.fail_at(number, lost, only)


@pytest.mark.parametrize("only", [MEASURED, "open c1", "door c1 hello", "door c1 host"])
def test_a_caller_lost_after_the_change_was_written_leaves_no_evidence_and_it_goes_back(only: str) -> None:
    stage, _ = with_caller()
    before = {MEASURED: 2, "open c1": 2, "door c1 hello": 2, "door c1 host": 1}[only]  # of pre-check and baseline
    lost_at(before + 1, only, stage)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.REVERTED, "caller_lost")
    assert "the load comes from c1, and that host is lost" in end.last.text
    assert stage.serving_as_before()
    assert "door gpu1 measure" not in stage.world.trace
    assert stage.journal.bodies("measure.outcome")[-1]["reason"] == "caller_lost"
    assert stage.world.trace.count("door gpu1 sample") == 4  # each sampler is stopped, also of the phase that failed
    assert not stage.journal.bodies("verdict")


def test_a_caller_lost_in_the_baseline_of_a_service_that_was_not_restarted_refuses() -> None:
    stage, _ = with_caller()
    lost_at(2, MEASURED, stage)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (3, Outcome.REFUSED, "caller_lost")
    assert stage.host.starts == 0


def test_a_caller_lost_in_the_baseline_after_a_restart_brings_the_saved_configuration_back() -> None:
    stage, _ = with_caller(("gpu1", "gpu2"))
    lost_at(3, MEASURED, stage)  # one request to each instance comes first
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.REVERTED, "caller_lost")
    assert stage.serving_as_before()


@pytest.mark.parametrize(("seconds", "reason"), [(4.0, "kept"), (9.0, "caller_lost")])
def test_a_link_that_was_cut_for_a_while_and_came_back_is_nothing_against_the_change(
    seconds: float, reason: str
) -> None:
    stage, caller = with_caller()
    stage.host.requests = 200
    stage.host.on_start = lambda host: setattr(caller, "cut", seconds)
    end = stage.apply(BETTER)

    assert end.last.reason == reason
    assert end.exit_code == (0 if reason == "kept" else 5)


def test_a_caller_lost_in_the_middle_of_a_trial_of_several_pairs_ends_it() -> None:
    stage, _ = with_caller()
    lost_at(5, MEASURED, stage)
    text = plan_text(BETTER).replace("effort: quick", "effort: standard\noutage: 30m")
    end = apply(stage.order(text), stage.tools)

    assert (end.exit_code, end.last.reason) == (5, "caller_lost")
    assert len(stage.journal.bodies("measure.outcome")) == 4
    assert stage.serving_as_before()


@pytest.mark.parametrize(
    "change",
    [
        lambda caller: setattr(caller, "boot", "another"),
        lambda caller: setattr(caller, "kernel", "6.2"),
        lambda caller: caller.hello.update(hostname="other"),
        lambda caller: caller.hello.update(python="3.12.0"),
    ],
    ids=["rebooted", "kernel", "another machine", "python"],
)
def test_a_caller_that_is_another_one_in_the_second_phase_makes_them_incomparable(
    change: Callable[[FakeCaller], None],
) -> None:
    stage, caller = with_caller()
    stage.host.on_start = lambda host: change(caller)
    end = stage.apply(BETTER)

    assert (end.exit_code, end.last.outcome, end.last.reason) == (5, Outcome.REVERTED, "invalid")
    assert "undeclared difference: caller" in end.last.text


@pytest.mark.parametrize("ahead", [-86400.0, 7200.0])
def test_what_the_callers_clock_says_changes_nothing(ahead: float) -> None:
    def figures(clock: float) -> list[Any]:
        stage, caller = with_caller()
        caller.hello["wall_time"] = clock
        assert stage.apply(BETTER).exit_code == 0
        return [body["summary"] for body in stage.journal.bodies("measure.outcome")]

    assert figures(1_790_000_000.0 + ahead) == figures(1_790_000_000.0)


def test_in_an_incident_nothing_is_sent_so_a_lost_caller_does_not_matter() -> None:
    stage, _ = with_caller()
    lost_at(1, "open c1", stage)
    end = mend(stage)

    assert end.last.outcome is Outcome.KEPT_UNJUDGED
    assert checked(stage)["detail"] == "no load is sent"
    assert doors_to(stage, "c1") == []


def test_a_caller_that_the_inventory_does_not_have_is_one_clear_error() -> None:
    stage = Stage(service_text=f"{SERVICE}caller: gateway\n")

    with pytest.raises(InputError) as caught:
        stage.apply(BETTER)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.path) == ("chat.yml", 12, "caller")
    assert problem.message == "`gateway` is no host of the inventory"
