"""Effort observe: no load is sent; live traffic before and after says gross harm, none of it, or nothing."""

from __future__ import annotations

import pytest
from tests.workflow.live_stage import LIVE_SERVICE, Users, applied, is_new, live_stage, story
from tests.workflow.stage import BETTER, SERVICE, STEP, Stage, plan_text

from changectl.core.lifecycle import Outcome
from changectl.workflow.apply import apply


def test_a_change_without_gross_harm_under_live_traffic_is_kept_and_no_load_was_sent() -> None:
    stage = live_stage(Users())
    end = applied(stage, "{observe: 5m}")

    assert (end.exit_code, end.last.outcome) == (0, Outcome.KEPT), end.last.text
    (verdict,) = stage.journal.bodies("verdict")
    assert verdict["verdict"] == "no_gross_harm"
    assert not [name for name in stage.world.trace if name.endswith(" measure")]
    assert [body["phase"] for body in stage.journal.bodies("observe.outcome")] == ["A", "B"]
    assert is_new(stage.host)


def test_the_record_shows_what_was_observed_as_it_shows_what_is_measured() -> None:
    stage = live_stage(Users())
    applied(stage, "{observe: 5m}")
    (step,) = story(stage).steps
    before, after = step.measurements
    (level,) = before["summary"]["levels"]
    assert (level["name"], 550 < level["n"] < 650, level["latency"]["ttft_user"]["mean"]) == ("live", True, 0.2)
    assert (before["phase"], after["phase"]) == ("A", "B")


@pytest.mark.parametrize(
    ("changed", "told"),
    [({"failing": 0.2}, "failures at live"), ({"ttft": 0.4}, "ttft_user"), ({"ttft": 0.7}, "ttft_user_p95 at live")],
    ids=["failures", "slower", "beyond the slo"],
)
def test_gross_harm_under_live_traffic_is_taken_back(changed: dict[str, float], told: str) -> None:
    slo = LIVE_SERVICE if changed.get("ttft") != 0.4 else LIVE_SERVICE.replace(", ttft_user_p95: <= 500ms", "")
    stage = live_stage(Users(changed=changed), slo)
    end = applied(stage, "{observe: 5m}")

    assert (end.exit_code, end.last.outcome, end.last.reason) == (4, Outcome.REVERTED, "regressed"), end.last.text
    assert told in end.last.text
    assert stage.unchanged()


def test_what_differs_beside_the_change_makes_the_two_times_incomparable() -> None:
    stage = live_stage(Users())

    def before(name: str) -> None:
        if is_new(stage.host):
            stage.host.boot = "another"

    stage.world.before = before
    end = applied(stage, "{observe: 5m}")
    assert end.last.outcome is Outcome.REVERTED
    assert end.last.reason == "invalid", end.last.text
    assert "undeclared difference: boot" in end.last.text
    assert stage.unchanged()


def test_too_little_live_traffic_is_no_pass_and_nothing_is_changed_for_it() -> None:
    stage = live_stage(Users(rate=0.02))
    end = applied(stage, "{observe: 5m}")

    assert (end.exit_code, end.last.reason) == (3, "baseline_invalid")
    assert "6 live requests ended before the change; 20 are needed" in end.last.text
    assert stage.journal.bodies("write.intent") == []


def test_traffic_that_ceases_after_the_change_leaves_it_undecided_and_it_is_taken_back() -> None:
    stage = live_stage(Users(changed={"rate": 0.0}))
    end = applied(stage, "{observe: 5m}")

    assert (end.exit_code, end.last.reason) == (5, "inconclusive")
    assert stage.unchanged()


def test_an_engine_that_counts_no_requests_is_not_changed() -> None:
    stage = Stage(service_text=SERVICE)
    text = plan_text(extra=STEP % BETTER).replace("effort: quick", "effort: observe")
    end = apply(stage.order(text), stage.tools)

    assert (end.exit_code, end.last.reason) == (3, "baseline_invalid")
    assert "the engine's own count of requests could not be read" in end.last.text
    assert stage.unchanged()


def test_a_process_that_dies_while_it_is_observed_ends_it_at_once() -> None:
    stage = live_stage(Users())
    seen: list[float] = []

    def before(name: str) -> None:
        if is_new(stage.host) and name == "reporter waiting" and stage.host.process is not None:
            seen.append(stage.world.seconds)
            if len(seen) == 20:
                stage.host.restart()

    stage.world.before = before
    end = applied(stage, "{observe: 1h}")
    assert (end.exit_code, end.last.reason) == (4, "regressed")
    assert "the service was restarted" in end.last.text
    assert stage.world.seconds < 4000


def test_more_than_one_per_cent_that_failed_is_flagged_though_it_is_no_harm() -> None:
    stage = live_stage(Users(failing=0.015))
    assert applied(stage, "{observe: 5m}").exit_code == 0
    (step,) = story(stage).steps
    assert step.summary.failures_flagged
    assert {flag["code"] for flag in step.flags} == {"failures_above_1_percent"}


@pytest.mark.parametrize(
    ("changed", "reason", "told"),
    [
        ({"failing": 0.2}, "watch_failures", "live requests failed; up to 2% would be no harm"),
        ({"ttft": 0.7}, "watch_latency", "took longer than ttft_user_p95 <= 500ms allows"),
        ({"preempted": 0.5}, "watch_preemptions", "were preempted"),
        ({"given_up": 0.5}, "watch_failures", "were given up by their clients"),
    ],
    ids=["failures", "slower", "preempted", "given up"],
)
def test_what_the_engine_counts_of_live_requests_is_watched(changed: dict[str, float], reason: str, told: str) -> None:
    stage = live_stage(Users(changed=changed), LIVE_SERVICE + "limits: {load_on_live: true}\n")
    end = applied(stage, "quick", more="    watch: 10m\n")

    assert (end.exit_code, end.last.reason) == (4, reason), end.last.text
    assert told in end.last.text
    assert stage.unchanged()


def test_live_requests_that_fail_a_little_are_flagged_by_the_watch_in_every_record() -> None:
    stage = live_stage(Users(changed={"failing": 0.015}), LIVE_SERVICE + "limits: {load_on_live: true}\n")
    assert applied(stage, "quick", more="    watch: 10m\n").exit_code == 0

    (watched,) = stage.journal.bodies("watch.outcome")
    assert watched["requests"] > 1000
    assert watched["flags"][0]["code"] == "failures_above_1_percent"
    (step,) = story(stage).steps
    assert step.summary.failures_flagged


def test_the_watchs_own_requests_are_no_live_requests() -> None:
    stage = live_stage(Users(rate=0.0, counts_probes=True), LIVE_SERVICE + "limits: {load_on_live: true}\n")
    assert applied(stage, "quick", more="    watch: 2m\n").exit_code == 0

    (watched,) = stage.journal.bodies("watch.outcome")
    assert (watched["answers"] > 18, watched["requests"]) == (True, 0)
    assert any("failures" in text and "(no request came)" in text for text in watched["not_watched"])


def test_a_watch_too_short_to_show_harm_does_not_end_as_kept_on_what_looks_like_harm() -> None:
    stage = live_stage(Users(changed={"failing": 0.2}), LIVE_SERVICE + "limits: {load_on_live: true}\n")
    end = applied(stage, "quick", more="    watch: 15s\n")

    assert (end.exit_code, end.last.reason) == (4, "watch_failures"), end.last.text
    assert "write a longer `watch`" in end.last.text
    assert stage.unchanged()
