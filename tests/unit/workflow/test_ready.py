"""Waiting for a start: told by real answers, ended when it is hopeless, bounded by a deadline with a source."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.workflow.fake_host import FakeHost
from tests.workflow.stage import SERVICE, Stage

from changectl.workflow.contact import open_target
from changectl.workflow.ready import Deadline, NotReady, Ready, deadline_for, wait_ready
from changectl.workflow.target import Target


def target_of(stage: Stage) -> Target:
    return open_target(stage.placed[0], stage.tools)


def wait(stage: Stage, seconds: float = 30.0, check: Callable[[], None] = lambda: None) -> Ready | NotReady:
    target = target_of(stage)
    cursor = target.status().cursor
    stage.host.restart()
    return wait_ready(target, Deadline(seconds, "the test"), cursor, stage.tools.clock, stage.reporter, check, None)


def failed(stage: Stage, seconds: float = 30.0) -> NotReady:
    result = wait(stage, seconds)
    assert isinstance(result, NotReady)
    return result


def test_ready_is_a_real_answer_and_the_time_counts_from_the_process_start() -> None:
    stage = Stage()
    stage.host.load_seconds = 7.0
    result = wait(stage)
    assert isinstance(result, Ready)
    assert result.seconds == pytest.approx(7.0, abs=1.0)
    assert "answered 2 tokens" in result.detail


def test_a_person_is_shown_what_goes_on() -> None:
    stage = Stage()
    stage.host.load_seconds = 5.0
    wait(stage)
    assert stage.reporter.waits
    assert stage.reporter.waits[0].startswith("loading")


def test_no_answer_in_time_names_the_deadlines_source() -> None:
    stage = Stage()
    stage.host.load_seconds = 1000.0
    result = failed(stage, 10.0)
    assert result.reason == "deadline"
    assert "within 10 s (the test)" in result.text


def test_a_certain_failure_line_ends_the_wait_long_before_the_deadline() -> None:
    stage = Stage()
    stage.host.load_seconds = 1000.0
    stage.host.on_start = lambda host: host.log.append("error: invalid argument: --foo")
    result = failed(stage, 600.0)
    assert result.reason == "failure_line"
    assert result.seconds < 10
    assert result.cause is not None
    assert result.cause.cause == "unknown_flag"


def test_a_line_that_good_starts_show_too_does_not_end_the_wait() -> None:
    stage = Stage()
    stage.host.load_seconds = 5.0
    stage.host.on_start = lambda host: host.log.append("ggml: failed to allocate buffer, trying another")
    assert isinstance(wait(stage), Ready)


def test_the_log_of_an_earlier_start_is_not_held_against_this_one() -> None:
    stage = Stage()
    stage.host.log.append("error: invalid argument: --foo")
    assert isinstance(wait(stage), Ready)


def test_a_unit_that_failed_is_a_crash_loop_with_its_deepest_cause() -> None:
    stage = Stage()
    stage.host.refuses = lambda argv: "llama_model_load: failed to open GGUF file /srv/m.gguf"
    result = failed(stage)
    assert result.reason == "crash_loop"
    assert "failed to open GGUF file" in result.text


def test_the_wrong_model_ends_the_wait() -> None:
    stage = Stage(service_text=SERVICE.replace("name: chat}", "name: other}"))
    result = failed(stage)
    assert result.reason == "wrong_model"
    assert "expected other" in result.text


def test_an_answer_of_a_process_that_is_gone_a_moment_later_does_not_count() -> None:
    stage = Stage()
    answered = 0

    def crash(host: FakeHost, call: str) -> None:
        nonlocal answered
        if call == "probe" and host.process is not None and host.world.seconds > host.process.started + 1.0:
            answered += 1
            if answered == 2:
                host.process.pid += 1000

    stage.host.on_call = crash
    result = wait(stage)
    assert isinstance(result, Ready)
    assert result.status.process is not None
    assert result.status.process.pid > 1000
    assert answered > 2


def test_somebody_who_asks_the_run_to_end_is_heard_at_every_look() -> None:
    stage = Stage()
    stage.host.load_seconds = 1000.0
    looks = 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wait(stage, check=check)


def test_the_deadline_comes_from_the_service_then_the_last_load_then_a_default() -> None:
    declared = target_of(Stage())
    open_ended = target_of(Stage(service_text=SERVICE.replace("ready: {deadline: 30s}\n", "")))
    assert deadline_for(declared, 100.0).seconds == 30.0
    assert deadline_for(open_ended, 100.0) == Deadline(500.0, "five times the last load (100.0 s)")
    assert deadline_for(open_ended, 12.0) == Deadline(60.0, "five times the last load (12.0 s)")
    assert deadline_for(open_ended, None).seconds == 600.0


def test_where_the_last_load_was_short_the_deadline_names_the_least_that_decides() -> None:
    open_ended = target_of(Stage(service_text=SERVICE.replace("ready: {deadline: 30s}\n", "")))
    assert deadline_for(open_ended, 0.4) == Deadline(60.0, "the least that any start gets; the last load took 0.4 s")


def test_no_deadline_is_longer_than_an_instance_may_be_out() -> None:
    text = SERVICE.replace("load_on_live: true", "load_on_live: true, max_out: 10s")
    assert deadline_for(target_of(Stage(service_text=text)), None) == Deadline(
        10.0, "the service file (limits: max_out)"
    )


def test_what_a_unit_does_before_its_process_may_take_its_time() -> None:
    stage = Stage()
    stage.host.prepares = 8.0
    result = wait(stage)
    assert isinstance(result, Ready)
    assert any("preparing the start" in told for told in stage.reporter.waits)
    assert result.seconds == pytest.approx(1.0, abs=1.0)


def test_the_deadline_holds_for_what_comes_before_the_process_too() -> None:
    stage = Stage()
    stage.host.prepares = 1000.0
    assert failed(stage, 10.0).reason == "deadline"


def test_a_unit_that_waits_for_its_next_start_is_a_crash_loop() -> None:
    stage = Stage()
    stage.host.waits_to_restart = True
    stage.host.refuses = lambda argv: "something nobody knows"
    result = failed(stage, 600.0)
    assert result.reason == "crash_loop"
    assert result.seconds < 10
