"""What makes a measurement of the saved configuration one that nothing can be compared with."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.core.judging.test_verdict import MS, failing, level, without

from changectl.core.judging.baseline import advice, unusable
from changectl.core.judging.judgement import HardEvent, Reason, Verdict
from changectl.core.judging.verdict import judge_quick
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import parse_expectation, parse_guard

FEWER_FAILURES = [parse_expectation("failures", "-50%")]


def found(*levels: LevelMeasurement, **given: Any) -> list[Reason]:
    return unusable(Measurement(levels or (level(),)), **given)


def codes(reasons: list[Reason]) -> list[str]:
    return [reason.code for reason in reasons]


def test_a_sound_measurement_is_one_to_compare_with() -> None:
    assert found() == []
    assert found(level("low"), level("peak", n=20, ok=20)) == []


@pytest.mark.parametrize(
    ("spoilt", "code", "text"),
    [
        (level(n=19, ok=19), "baseline_too_few", "19 good answers to 19 requests at normal; 20 are needed"),
        (level(lag_p99=21 * MS), "baseline_generator_late", "did not keep up at normal: it sent 21ms late (P99)"),
        (failing(21), "baseline_failures", "21% of the requests failed at normal (limit 20%): 21 http_5xx"),
        (failing(6, "empty"), "baseline_empty", "6% of the answers were empty at normal (limit 5%)"),
        (without("tpot"), "baseline_no_figures", "tpot at normal: 100 of 100 good answers lack it"),
    ],
)
def test_each_way_to_be_worthless_is_named_with_figures_and_with_what_to_do(
    spoilt: LevelMeasurement, code: str, text: str
) -> None:
    (reason,) = found(spoilt)
    assert reason.code == code
    assert text in reason.text
    assert advice([reason])


@pytest.mark.parametrize("sound", [level(n=20, ok=20), level(lag_p99=19 * MS), failing(20), failing(5, "empty")])
def test_what_is_just_within_the_limits_is_compared(sound: LevelMeasurement) -> None:
    assert found(sound) == []


def test_one_bad_level_of_several_is_enough() -> None:
    reasons = found(level("low"), level("peak", n=3, ok=3))
    assert codes(reasons) == ["baseline_too_few"]
    assert "at peak" in reasons[0].text


def test_a_failed_measurement_and_a_disturbed_one_are_worthless() -> None:
    assert codes(unusable(Measurement((), invalid=("it crashed",)))) == ["baseline_failed"]
    assert codes(unusable(Measurement(()))) == ["baseline_failed"]
    event = HardEvent("oom_kill", "memory ran out", "A")
    assert [str(reason) for reason in found(hard_events=[event])] == ["memory ran out"]


@pytest.mark.parametrize(("name", "needed"), [("settings", True), ("files./etc/x", True), ("kernel", False)])
def test_what_a_comparison_needs_has_to_be_known(name: str, needed: bool) -> None:
    assert codes(found(unread_conditions=[name])) == ["baseline_conditions_unknown"] * needed


def test_a_plan_that_expects_fewer_failures_may_begin_with_many() -> None:
    assert found(failing(40), expect=FEWER_FAILURES) == []
    assert found(failing(40, "empty"), expect=FEWER_FAILURES) == []
    assert codes(found(failing(51), expect=FEWER_FAILURES)) == ["baseline_failures"]  # no median is left


def test_a_metric_with_a_limit_of_its_own_needs_no_baseline() -> None:
    assert found(without("tpot"), guards=[parse_guard("tpot", "<= 50ms")]) == []
    elsewhere = parse_guard("tpot at peak", "<= 50ms")
    assert codes(found(without("tpot"), level("peak"), guards=[elsewhere])) == ["baseline_no_figures"]


def test_only_what_the_class_of_the_service_guards_is_needed() -> None:
    assert found(without("ttft_user"), service_class="offline") == []
    assert codes(found(without("e2e_user"), service_class="offline")) == ["baseline_no_figures"]


def test_a_metric_that_no_answer_can_have_is_not_missed() -> None:
    single_tokens = level(latency={**level().latency, "tpot": {"p50": None}}, undefined={"tpot": 100})
    assert found(single_tokens) == []


@pytest.mark.parametrize(
    "spoilt",
    [level(n=19, ok=19), level(lag_p99=21 * MS), failing(51), failing(30), failing(6, "empty"), without("tpot")],
)
def test_whatever_is_refused_would_have_left_the_trial_without_a_verdict(spoilt: LevelMeasurement) -> None:
    phase = Measurement((spoilt,))
    assert unusable(phase)
    assert judge_quick(phase, phase).verdict in (Verdict.INCONCLUSIVE, Verdict.INVALID)


def test_the_same_advice_is_given_once() -> None:
    reasons = found(level("low", n=3, ok=3), level("peak", n=4, ok=4))
    assert len(reasons) == 2
    assert advice(reasons).count("write more") == 1
