"""What other judges got wrong in public, as trials. Each name says what happens here instead."""

from __future__ import annotations

import dataclasses
import math

import numpy
import pytest
from tests.unit.core.trial.trial_samples import (
    calibrated,
    failing,
    few,
    latencies,
    level,
    phase,
    row,
    slowed,
    steady,
    trial,
)

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.measuring.metrics import parse_expectation, parse_guard
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import looks
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import NOTHING_KNOWN, judge_trial


def at_the_end(phases: list[TrialPhase], noise: NoiseModel = NOTHING_KNOWN, **given: object) -> Judgement:
    """What the trial says at the first look that does not go on."""
    pairs = len(phases) // 2
    for look in looks(pairs):
        found = judge_trial(phases[: 2 * look], looks(pairs), noise=noise, declared=("slots",), **given)  # type: ignore[arg-type]
        if found.decision != "go_on":
            return found
    raise AssertionError("a trial has to end")


def test_shedding_a_third_of_the_load_to_be_faster_is_regressed() -> None:
    shed = dataclasses.replace(failing(90), latency=latencies(ttft_user=0.5, e2e_user=0.5), rps_ok=12.0)
    judgement = at_the_end(steady(2, b=shed), expect=[parse_expectation("ttft_user", "-30%")])
    assert judgement.verdict is Verdict.REGRESSED


def test_fast_errors_for_every_fifth_request_are_no_gain_in_speed() -> None:
    quick = failing(60, latency=latencies(e2e_user=0.8), rps_ok=8.0)
    judgement = at_the_end(steady(2, b=quick), expect=[parse_expectation("e2e_user", "-10%")])
    assert judgement.verdict is Verdict.REGRESSED
    assert any("failures" in reason.text and "20%" in reason.text for reason in judgement.reasons)


@pytest.mark.parametrize("noise", [NOTHING_KNOWN, calibrated(0.1)])
def test_runs_of_one_configuration_that_differ_by_ten_percent_prove_nothing(noise: NoiseModel) -> None:
    generator = numpy.random.default_rng(11)
    expect = [parse_expectation("rps_ok", "+3%")]
    ends = []
    for _ in range(40):
        wobble = generator.normal(0, 0.1, 9)
        phases = trial(4, lambda number, _, by=wobble: slowed(few(level(), 50), math.exp(by[number])))
        ends.append(at_the_end(phases, noise, expect=expect).verdict)
    assert ends.count(Verdict.INCONCLUSIVE) >= 38  # all figures move together, so that chance has one throw each


def test_a_host_that_slows_down_between_two_phases_and_stays_slow_is_not_blamed_on_the_change() -> None:
    slow = trial(4, lambda number, _: slowed(level(), 1.0 if number == 1 else 1.1))
    for noise in (NOTHING_KNOWN, calibrated()):
        for pairs in (2, 3, 4):
            judgement = judge_trial(slow[: 2 * pairs], looks(4), noise=noise, declared=("slots",))
            assert judgement.verdict is not Verdict.REGRESSED


def test_a_baseline_without_errors_does_not_let_errors_pass() -> None:
    judgement = at_the_end(steady(2, b=failing(6)))  # 0 of 600, then 12 of 600
    assert judgement.verdict is Verdict.REGRESSED
    assert row(judgement, "failures").state == "breach"


@pytest.mark.parametrize("noise", [NOTHING_KNOWN, calibrated(0.0, 30)])
def test_figures_that_never_differ_but_for_the_change_are_regressed_and_break_nothing(noise: NoiseModel) -> None:
    doubled = level(latency=latencies(tpot=41 / 20))
    accept = [parse_guard("tpot", "<= 30ms", "accept")]
    assert at_the_end(steady(4, b=doubled), noise).verdict is Verdict.REGRESSED
    assert at_the_end(steady(4, b=doubled), noise, accept=accept).verdict is Verdict.REGRESSED
    assert at_the_end(steady(4), noise).verdict is Verdict.UNCHANGED


def test_whole_numbers_with_many_ties_are_figures_like_others() -> None:
    tied = trial(4, lambda number, _: level(rps_ok=11.0 if number in (3, 8) else 10.0))
    assert at_the_end(tied, calibrated(0.05)).verdict in (Verdict.UNCHANGED, Verdict.INCONCLUSIVE)


def test_one_side_without_a_figure_is_never_a_pass() -> None:
    bare = level(rps_ok=None)
    assert at_the_end(steady(4, b=bare), calibrated()).decision == "policy"
    assert at_the_end(steady(4, a=bare), calibrated()).decision == "policy"


def test_a_guard_on_a_level_that_was_not_measured_is_never_a_pass() -> None:
    judgement = at_the_end(steady(4), calibrated(), slo=[parse_guard("ttft_user_p95 at night", "<= 800ms")])
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert 'no level "night" was measured' in judgement.reasons[0].text


@pytest.mark.parametrize("name", ["kv_capacity", "load_time", "ttfo_p50", "goodput", "failures at night"])
def test_a_guard_that_never_got_a_sample_is_never_a_pass(name: str) -> None:
    limits = {"kv_capacity": ">= 100 tokens", "goodput": ">= 95%", "failures at night": "<= 1%"}
    judgement = at_the_end(steady(4), calibrated(), slo=[parse_guard(name, limits.get(name, "<= 10s"))])
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert judgement.decision == "policy"


def test_a_guard_with_a_typing_error_is_no_guard() -> None:
    with pytest.raises(ValueError, match='no metric "ttft_usr_p95"'):
        parse_guard("ttft_usr_p95", "<= 800ms")


def test_a_single_phase_five_times_as_slow_is_reported_and_not_regressed() -> None:
    spike = trial(4, lambda number, _: slowed(level(), 5.0 if number == 3 else 1.0))
    judgement = at_the_end(spike, calibrated())
    assert judgement.verdict is Verdict.INCONCLUSIVE
    (flag,) = [flag for flag in judgement.flags if flag.code == "outlier"]
    assert flag.text.startswith("phase 3 (B) was unlike the others")
    assert flag.text.endswith("5 times worse")


def test_a_spike_of_the_saved_configuration_is_no_gain() -> None:
    spike = trial(4, lambda number, _: slowed(level(), 5.0 if number == 4 else 1.0))
    judgement = at_the_end(spike, calibrated(), expect=[parse_expectation("rps_ok", "+10%")])
    assert judgement.verdict is not Verdict.IMPROVED


def test_a_service_that_is_never_stable_is_not_stable_by_chance() -> None:
    for bad in ((1, 3, 5, 7), (2, 4, 6, 8), (1, 2, 5, 6), (1, 3, 6, 8), (2, 3, 5, 8)):
        alternating = trial(4, lambda number, _, slow=bad: slowed(level(), 1.3 if number in slow else 1.0))
        for noise in (NOTHING_KNOWN, calibrated(0.15)):
            judgement = at_the_end(alternating, noise)
            assert judgement.verdict is Verdict.INCONCLUSIVE


def test_a_slow_ramp_of_three_percent_a_phase_is_no_effect() -> None:
    ramp = trial(4, lambda number, _: slowed(level(), 1.03**number))
    assert at_the_end(ramp, calibrated()).verdict is Verdict.UNCHANGED
    worse = trial(4, lambda number, letter: slowed(level(), 1.03**number * (1.1 if letter == "B" else 1.0)))
    assert at_the_end(worse, calibrated()).verdict is Verdict.REGRESSED


def test_the_same_phases_bring_the_same_bytes() -> None:
    texts = {str(at_the_end(steady(4, b=failing(3))).to_json()) for _ in range(5)}
    assert len(texts) == 1


def test_a_phase_lost_on_the_way_does_not_turn_the_verdict() -> None:
    whole = trial(4, lambda _, letter: level(latency=latencies(tpot=1.1 if letter == "B" else 1.0)))
    left = [one for one in whole if one.number not in (2, 5)]
    assert judge_trial(left, looks(4), noise=calibrated(), declared=("slots",)).verdict is Verdict.REGRESSED
    assert phase(1, "A").number == whole[0].number
