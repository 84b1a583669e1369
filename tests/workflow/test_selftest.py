"""Does measuring see? A known delay on the way has to be found, no delay must not be, and nothing else may happen."""

from __future__ import annotations

import signal
from typing import Any

import pytest
from tests.workflow.live_stage import LIVE_SERVICE, Users, live_stage
from tests.workflow.stage import BETTER, SERVICE, Stage

from changectl.core.declared.placing import place_caller
from changectl.core.errors import ContactLost, Locked, Refused
from changectl.core.history.runs import runs
from changectl.core.history.selftests import selftests
from changectl.core.trial.seeing import KINDS
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.selftest import SelfTestEnd, SelfTestOrder, self_test

LOW = LIVE_SERVICE.replace("levels: {normal: 8 streams}", "levels: {low: 1 stream}")
TRAFFIC = "traffic: {command: {out: /opt/lb out, in: /opt/lb in}}\n"


def proven(stage: Stage, seconds: float | None = None) -> SelfTestEnd:
    caller = place_caller(stage.service, stage.tools.inventory.host)
    order = SelfTestOrder(stage.service, stage.placed, stage.workload, "openai_completions", caller, seconds)
    return self_test(order, stage.tools)


def codes(end: SelfTestEnd) -> list[str]:
    return [reason.code for reason in end.instances[0].sight.reasons]


def assert_nothing_happened_to(stage: Stage) -> None:
    """No play ran, no lease was taken, and the very process still runs."""
    assert stage.serving_as_before()
    assert stage.host.starts == Stage(stage.names, service_text=stage.service_text).host.starts
    assert not [call for call in stage.world.trace if call.startswith("play")]
    assert not [event for event in stage.journal.lines if event.kind.startswith(("lease", "arm", "write", "restart"))]
    assert stage.host.keeper.holder is None


def test_a_delay_that_shows_is_found_and_no_delay_is_none() -> None:
    stage = Stage()
    end = proven(stage)

    assert end.sees
    (one,) = end.instances
    assert one.sight.delay == pytest.approx(0.4 * 0.040, abs=0.010)
    assert one.sight.found == pytest.approx(one.sight.delay, abs=0.001)
    assert stage.host.ways == [0.0, 0.0, one.sight.delay, one.sight.delay, 0.0, 0.0]
    assert len(set(stage.host.salts)) == len(KINDS)
    assert_nothing_happened_to(stage)


@pytest.mark.parametrize("shows", [0.0, 0.1])
def test_a_delay_that_does_not_show_is_blind(shows: float) -> None:
    stage = Stage()
    stage.host.shows = shows
    end = proven(stage)

    assert not end.sees
    assert codes(end) == ["delay_not_seen"]
    assert "was not judged a regression of ttft_user at normal" in end.instances[0].sight.reasons[0].text
    assert_nothing_happened_to(stage)


def test_a_difference_where_there_is_none_is_blind() -> None:
    stage = Stage()
    stage.host.speed = lambda argv, streams: (120 if len(stage.host.salts) in (1, 4) else 40, 5)
    assert "false_alarm" in codes(proven(stage))


def test_a_generator_that_does_not_tell_time_proves_nothing_and_no_more_is_sent() -> None:
    stage = Stage()
    stage.host.inexact = [0.5, 0.5]
    end = proven(stage)
    assert codes(end) == ["unusable"]
    assert "did not tell time" in end.instances[0].sight.reasons[0].text
    assert len(stage.host.salts) == 2


def test_a_phase_in_which_the_generator_was_late_for_a_moment_is_sent_once_more() -> None:
    stage = Stage()
    stage.host.late = 1
    assert proven(stage).sees
    assert len(set(stage.host.salts)) == len(KINDS) + 1
    late = [body.get("late") for body in stage.journal.bodies("selftest.phase.outcome")]
    assert late[0].startswith("it sent 300ms late (P99)")
    assert late[1:] == [None] * 5


def test_a_service_that_is_restarted_meanwhile_proves_nothing() -> None:
    stage = Stage()

    def restart(host: Any, call: str) -> None:
        if call == "measure" and len(host.salts) == 3:
            host.restart()

    stage.host.on_call = restart
    end = proven(stage)
    assert not end.sees
    assert "not_comparable" in codes(end)


def test_minutes_and_requests_are_said_before_anything_is_sent() -> None:
    stage = Stage()
    proven(stage, seconds=30.0)
    said = next(text for text in stage.reporter.notes if "6 phases" in text)
    assert "6 phases at normal (8 streams), about 3m" in said
    assert "Nothing is changed" in said


def test_it_is_on_record_as_no_change_so_that_nothing_has_to_be_settled() -> None:
    stage = Stage()
    end = proven(stage)

    events = stage.journal.lines
    (found,) = selftests(events, "chat")
    assert (found.run, found.sees, found.actor) == (end.run, True, "kim@desk")
    assert [event.kind for event in events] == [
        "selftest.intent", *["selftest.phase.intent", "selftest.phase.outcome"] * len(KINDS), "selftest.outcome",
    ]  # fmt: skip
    assert {event.body["blob"] for event in events if event.kind == "selftest.phase.outcome"} == set(
        stage.records.blobs
    )
    assert stage.apply(BETTER).exit_code == 0
    assert [run.run for run in runs(event for event in stage.journal.lines if event.run != end.run)] == ["R2"]


@pytest.mark.parametrize("error", [lambda: KeyboardInterrupt(), lambda: ContactLost("gone")])
@pytest.mark.parametrize("number", [1, 4])
def test_cut_off_in_the_middle_leaves_nothing_and_proves_nothing(error: Any, number: int) -> None:
    stage = Stage()

    def die(host: Any, call: str) -> None:
        if call == "measure" and len(host.salts) + 1 == number:
            raise error()

    stage.host.on_call = die
    with pytest.raises((KeyboardInterrupt, ContactLost)):
        proven(stage)
    stage.host.on_call = lambda host, call: None
    (found,) = selftests(stage.journal.lines, "chat")
    assert not found.sees
    assert_nothing_happened_to(stage)
    assert stage.records.held is None
    assert stage.apply(BETTER).exit_code == 0


def test_it_ends_between_phases_where_somebody_asks_for_it() -> None:
    stage = Stage()

    def ask(host: Any, call: str) -> None:
        if call == "measure" and len(host.salts) == 1:
            signal.raise_signal(signal.SIGTERM)

    stage.host.on_call = ask
    with pytest.raises(Interrupted):
        proven(stage)
    assert len(stage.host.salts) == 2


def test_without_a_level_for_services_in_use_no_load_is_sent() -> None:
    stage = Stage(service_text=SERVICE.replace("limits: {load_on_live: true}\n", ""))
    with pytest.raises(Refused, match="low") as refused:
        proven(stage)
    assert refused.value.reason == "load_not_allowed"
    assert stage.host.salts == []


@pytest.mark.parametrize("more", ["", TRAFFIC])
def test_more_than_a_tenth_of_what_users_send_is_refused_also_where_it_could_be_taken_out_of_service(more: str) -> None:
    stage = live_stage(Users(rate=1.0), LOW + more)
    with pytest.raises(Refused):
        proven(stage)
    assert stage.host.salts == []
    assert stage.journal.lines == []


def test_an_instance_that_serves_nobody_gets_the_load() -> None:
    stage = live_stage(Users(rate=0.0), LOW)
    assert proven(stage).sees
    assert any("watching what users send" in text for text in stage.reporter.waits)


def test_another_change_on_its_host_is_left_alone() -> None:
    stage = Stage()
    stage.host.keeper.holder = {"run": "R-other", "owner": "lee@desk", "live": True}
    with pytest.raises(Locked, match="R-other of lee@desk"):
        proven(stage)
    assert stage.host.salts == []


def test_a_run_that_has_to_be_settled_first_is_named() -> None:
    stage = Stage()
    stage.memory.cut_off = ["R-dead"]
    with pytest.raises(Refused) as refused:
        proven(stage)
    assert refused.value.reason == "unfinished_run"
    assert stage.host.salts == []


def test_of_several_instances_each_is_proven_and_one_blind_one_is_enough() -> None:
    stage = Stage(("gpu1", "gpu2"))
    stage.hosts["gpu2"].shows = 0.0
    end = proven(stage)
    assert [(one.instance, one.sight.sees) for one in end.instances] == [("gpu1", True), ("gpu2", False)]
    assert not end.sees
