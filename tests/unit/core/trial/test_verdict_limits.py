"""Limits, failures and figures without bounds in a trial."""

from __future__ import annotations

import math

import pytest
from tests.unit.core.trial.trial_samples import (
    GOES_ON,
    KEPT_NEUTRAL,
    LEFT_TO_THE_PLAN,
    MS,
    REGRESSED,
    end,
    failing,
    few,
    judge,
    latencies,
    level,
    phase,
    row,
    slower,
    steady,
    trial,
    unbounded,
)

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.metrics import parse_expectation, parse_guard
from changectl.core.trial.order import Letter
from changectl.core.trial.phases import TrialPhase


def test_a_limit_takes_the_place_of_margin_and_factor() -> None:
    worse = slower("tpot", 2.0)  # 40 ms; P95 48 ms
    assert end(judge(steady(1, b=worse))) == REGRESSED
    accept = [parse_guard("tpot_p95", "<= 55ms", "accept")]
    judgement = judge(steady(2, b=worse), accept=accept)
    assert end(judgement) == KEPT_NEUTRAL
    held = row(judgement, "tpot_p95 at normal")
    assert (held.state, held.limit) == ("clear", "accept tpot_p95 <= 55ms")
    assert held.bound is not None
    assert 48 * MS < held.bound < 55 * MS


def test_a_limit_is_held_against_the_candidates_bound_and_not_its_figure() -> None:
    near = steady(2, b=slower("tpot", 1.2))  # 24 ms
    assert end(judge(near, accept=[parse_guard("tpot_p50", "<= 24.1ms", "accept")])) == GOES_ON
    assert end(judge(near, accept=[parse_guard("tpot_p50", "<= 25ms", "accept")])) == KEPT_NEUTRAL


def test_a_limit_that_the_change_breaks_is_regressed() -> None:
    broken = judge(steady(2, b=slower("tpot", 1.2)), slo=[parse_guard("tpot_p50", "<= 22ms")])
    assert end(broken) == REGRESSED
    assert "24ms" in broken.reasons[0].text
    gross = judge(steady(1, b=slower("tpot", 3.0)), slo=[parse_guard("tpot_p95", "<= 50ms")])
    assert end(gross) == REGRESSED


def test_a_limit_that_was_not_met_before_either_is_not_blamed_on_the_change() -> None:
    judgement = judge(steady(4, b=slower("ttft_user", 0.98)), slo=[parse_guard("ttft_user_p50", "<= 90ms")])
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert row(judgement, "ttft_user_p50 at normal").note == "it was beyond it before, too"
    assert judgement.more_pairs is None


def test_where_two_limits_name_a_metric_both_must_hold() -> None:
    limits = {"accept": [parse_guard("tpot", "<= 60ms", "accept")], "slo": [parse_guard("tpot_p95", "<= 45ms")]}
    assert end(judge(steady(2, b=slower("tpot", 2.0)), **limits)) == REGRESSED


def test_a_limit_at_one_level_leaves_the_margin_at_the_others() -> None:
    guard = [parse_guard("tpot at peak", "<= 60ms", "accept")]

    def worse(name: str) -> list[TrialPhase]:
        return trial(
            2,
            lambda _, letter: [
                level(each, latency=latencies(tpot=1.4 if letter == "B" and each == name else 1.0))
                for each in ("normal", "peak")
            ],
        )

    assert end(judge(worse("peak"), accept=guard)) == KEPT_NEUTRAL
    assert end(judge(worse("normal"), accept=guard)) == REGRESSED


def test_a_limit_on_a_p95_that_does_not_exist_leaves_it_open_unless_the_median_breaks_it() -> None:
    small = [parse_guard("ttft_user_p95", "<= 150ms")]
    judgement = judge(trial(2, lambda *_: few(level())), slo=small)
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert row(judgement, "ttft_user_p95 at normal").gap
    broken = trial(2, lambda _, letter: few(slower("ttft_user", 1.6 if letter == "B" else 1.0)))
    assert end(judge(broken, slo=small)) == REGRESSED
    lower = [parse_guard("ttft_user_p95", "<= 130ms")]
    less = judge(trial(2, lambda _, letter: few(slower("ttft_user", 1.4 if letter == "B" else 1.0))), slo=lower)
    assert end(less) == REGRESSED
    assert "the median is beyond it already" in less.reasons[0].text


def test_failures_are_pooled_over_levels_and_pairs() -> None:
    names = ("low", "normal", "peak")

    def phases(pairs: int, failed: int) -> list[TrialPhase]:
        return trial(pairs, lambda _, letter: [failing(failed if letter == "B" else 0, name=each) for each in names])

    judgement = judge(phases(2, 3))  # 1 % of 300 each: 18 of 1800 together
    assert end(judgement) == REGRESSED
    found = row(judgement, "failures")
    assert (found.state, found.before, found.after) == ("breach", 0.0, pytest.approx(0.01))
    assert [one.metric for one in judgement.rows].count("failures") == 1


def test_the_bound_that_failures_reached_is_shown() -> None:
    found = row(judge(steady(2)), "failures")
    assert found.state == "clear"
    # no failure in 600 requests: 1 - (0.05/6)^(1/600)
    assert found.high == pytest.approx(1 - (0.05 / 6) ** (1 / 600))
    assert "between -0.795 points and +0.795 points" in str(found)
    assert found.note == "no larger share failed; +0.795 points are not excluded by 600 requests"


def test_a_few_more_failures_than_the_margin_allows_for_stay_open() -> None:
    judgement = judge(steady(2, b=failing(1)))
    assert end(judgement) == GOES_ON
    assert row(judgement, "failures").state == "open"


def test_failures_that_are_certain_and_below_the_margin_are_no_harm() -> None:
    many = {"n": 12000, "finish": {"length": 12000}}
    judgement = judge(trial(2, lambda _, letter: failing(30 if letter == "B" else 0, **many)))
    assert row(judgement, "failures").evidence == pytest.approx(0, abs=1e-6)
    assert end(judgement) == KEPT_NEUTRAL


def test_an_explicit_limit_on_failures_is_held_against_their_bound() -> None:
    limit = [parse_guard("failures", "<= 1%")]
    assert end(judge(steady(2), slo=limit)) == KEPT_NEUTRAL
    small = judge(trial(2, lambda *_: few(level())), slo=limit)
    assert end(small) == GOES_ON
    assert "is not excluded" in row(small, "failures").note
    assert end(judge(steady(2, b=failing(12)), slo=limit)) == REGRESSED
    allowed = [parse_guard("failures", "<= 10%", "accept")]
    assert end(judge(steady(2, b=failing(12, latency=latencies())), accept=allowed)) == KEPT_NEUTRAL


def test_a_burst_of_failures_in_one_phase_is_not_the_changes_doing() -> None:
    burst = trial(4, lambda number, _: failing(24) if number == 6 else level())
    judgement = judge(burst)
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert "came in bursts" in row(judgement, "failures").note
    spread = trial(4, lambda _, letter: failing(6) if letter == "B" else level())
    assert end(judge(spread)) == REGRESSED


def test_fewer_failures_can_be_the_expected_gain() -> None:
    expect = [parse_expectation("failures", "-50%")]
    mended = trial(2, lambda _, letter: failing(12) if letter == "A" else level())
    assert end(judge(mended, expect=expect)) == (Verdict.IMPROVED, "keep")
    assert end(judge(steady(2), expect=expect)) == (Verdict.UNCHANGED, "revert")
    as_many = trial(4, lambda *_: failing(12))
    assert judge(as_many, expect=expect).verdict is not Verdict.IMPROVED


def test_a_tail_without_bounds_on_one_side_is_no_pass_and_on_both_is_left_to_the_median() -> None:
    endless = failing(20, latency=unbounded("p95"))
    worse = judge(trial(2, lambda _, letter: endless if letter == "B" else level()))
    assert end(worse) == REGRESSED
    assert row(worse, "ttft_user_p95 at normal").state == "breach"
    assert row(worse, "ttft_user_p95 at normal").after == math.inf
    both = judge(trial(2, lambda *_: endless))
    assert end(both) == KEPT_NEUTRAL
    assert row(both, "ttft_user_mean at normal").state == "clear"
    assert "failures_above_1_percent" in [flag.code for flag in both.flags]
    better = judge(trial(2, lambda _, letter: endless if letter == "A" else level()))
    assert end(better) == KEPT_NEUTRAL
    assert (row(better, "tpot_p95 at normal").state, row(better, "tpot_p95 at normal").before) == ("clear", math.inf)


def test_the_size_of_a_tail_without_bounds_takes_most_of_its_phases_and_bounds_before() -> None:
    allowed = [parse_guard("failures", "<= 20%", "accept")]
    endless, worse = failing(20, latency=unbounded("p95")), failing(12)
    once = judge(trial(4, lambda number, letter: endless if number == 6 else worse if letter == "B" else level()),
                 accept=allowed)  # fmt: skip
    assert end(once) == LEFT_TO_THE_PLAN
    mostly = judge(trial(4, lambda _, letter: endless if letter == "B" else level()), accept=allowed)
    assert end(mostly) == REGRESSED
    limit = [*allowed, parse_guard("tpot_p95", "<= 1s")]
    as_before = failing(40, latency=unbounded("p95"))
    both = judge(trial(4, lambda _, letter: as_before if letter == "B" else endless), slo=limit)
    assert end(both) == LEFT_TO_THE_PLAN


def test_a_tail_that_lost_its_bounds_in_one_phase_alone_stays_open() -> None:
    endless = failing(16, latency=unbounded("p95"))
    judgement = judge(trial(4, lambda number, _: endless if number == 3 else level()))
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert row(judgement, "tpot_p95 at normal").note == "too many failed in phase 3"


def test_a_context_cache_is_guarded_where_the_engine_tells_it() -> None:
    def told(b: float | None) -> Judgement:
        phases = steady(2)
        return judge([
            phase(one.number, one.letter, facts={"kv_capacity": 9000.0 if one.letter == "A" else b}) for one in phases
        ])  # fmt: skip

    assert end(told(9000.0)) == KEPT_NEUTRAL
    assert end(told(7800.0)) == REGRESSED
    assert end(told(None)) == LEFT_TO_THE_PLAN


def test_a_limit_on_the_load_time_takes_every_start() -> None:
    limit = [parse_guard("load_time", "<= 10s")]

    def loading(seconds: float) -> Judgement:
        phases = steady(3)
        return judge(
            [phase(one.number, one.letter, facts={"load_time": 8 if one.letter == "A" else seconds}) for one in phases],
            slo=limit,
        )

    assert end(loading(9.0)) == KEPT_NEUTRAL
    assert end(loading(12.0)) == REGRESSED
    assert end(judge(steady(2), slo=limit)) == LEFT_TO_THE_PLAN


def test_a_burst_at_one_level_of_the_first_pair_is_no_gross_harm_and_failures_at_most_levels_are() -> None:
    names = ("low", "normal", "peak")

    def first_pair(*failed: int) -> list[TrialPhase]:
        return trial(
            1,
            lambda _, letter: [
                failing(n if letter == "B" else 0, name=name) for n, name in zip(failed, names, strict=True)
            ],
        )

    assert end(judge(first_pair(0, 45, 0))) == GOES_ON
    assert end(judge(first_pair(0, 45, 45))) == REGRESSED
    assert end(judge(first_pair(0, 90, 0))) == REGRESSED  # a fifth of a level's requests needs no statistics


def test_failures_that_come_in_bursts_with_either_configuration_are_not_blamed_on_it_where_two_meet() -> None:
    """Both phases of B have a burst at the same level; those of A, at others, tell that this is what the host does."""
    bursts = {1: "low", 2: "peak", 3: "peak", 4: "normal"}

    def make(number: int, _: Letter) -> list[LevelMeasurement]:
        return [failing(24 if bursts[number] == name else 0, name=name) for name in ("low", "normal", "peak")]

    assert end(judge(trial(2, make))) == GOES_ON
