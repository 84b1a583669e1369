"""The verdict on a trial of several pairs, look by look."""

from __future__ import annotations

import dataclasses
import json

import pytest
from tests.unit.core.trial.trial_samples import (
    GOES_ON,
    INVALID,
    KEPT_NEUTRAL,
    LEFT_TO_THE_PLAN,
    MS,
    REGRESSED,
    calibrated,
    codes,
    end,
    event,
    failing,
    judge,
    latencies,
    level,
    row,
    slowed,
    slower,
    steady,
    trial,
    unbounded,
)

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.measuring.metrics import parse_expectation
from changectl.core.trial.noise_model import NoiseModel


def test_a_neutral_change_that_costs_nothing_is_kept_as_unchanged_at_the_second_look() -> None:
    assert end(judge(steady(1))) == GOES_ON
    judgement = judge(steady(2))
    assert end(judgement) == KEPT_NEUTRAL
    assert {one.state for one in judgement.rows} == {"clear"}
    assert "9 figures are within their limits" in judgement.reasons[0].text


def test_a_gain_that_was_expected_and_seen_is_improved() -> None:
    expect = [parse_expectation("rps_ok at normal", "+10%")]
    judgement = judge(steady(2, b=level(rps_ok=11.5)), expect=expect)

    assert end(judgement) == (Verdict.IMPROVED, "keep")
    target = judgement.rows[-1]
    assert (target.state, target.limit, target.change) == ("gain", "expected +10%", pytest.approx(0.15))
    assert codes(judgement) == ["gain", "within_limits"]


def test_without_a_level_the_gain_has_to_be_there_at_every_level() -> None:
    levels = [level("low"), level("peak")]
    faster = [level("low"), level("peak", rps_ok=12.0)]
    phases = trial(4, lambda _, letter: levels if letter == "A" else faster)

    everywhere = judge(phases, expect=[parse_expectation("rps_ok", "+10%")])
    assert end(everywhere) == (Verdict.UNCHANGED, "revert")
    assert "rps_ok at low" in everywhere.reasons[0].text
    at_peak = judge(phases, expect=[parse_expectation("rps_ok at peak", "+10%")])
    assert end(at_peak) == (Verdict.IMPROVED, "keep")


def test_a_gain_that_is_not_there_is_unchanged_and_not_kept() -> None:
    judgement = judge(steady(2), expect=[parse_expectation("tpot", "-10%")])

    assert end(judgement) == (Verdict.UNCHANGED, "revert")
    assert codes(judgement) == ["no_gain", "within_limits"]
    assert row(judgement, "tpot_p50 at normal").state == "clear"
    assert judgement.rows[-1].state == "flat"


def test_less_gain_than_was_promised_is_no_improvement() -> None:
    judgement = judge(steady(4, b=level(rps_ok=10.4)), expect=[parse_expectation("rps_ok", "+10%")])
    assert end(judgement) == (Verdict.UNCHANGED, "revert")
    assert "between" in str(judgement.rows[-1])


def test_a_gain_without_evidence_goes_on_and_so_does_the_lack_of_one() -> None:
    expect = [parse_expectation("rps_ok", "+10%")]
    wobble = {1: 9.0, 2: 13.0, 3: 10.5, 4: 11.0}
    seen = judge(trial(2, lambda number, _: level(rps_ok=wobble[number])), expect=expect, noise=calibrated(0.1))
    assert end(seen) == GOES_ON
    assert seen.rows[-1].change is not None
    assert (seen.rows[-1].state, seen.rows[-1].change > 0.1) == ("open", True)
    unseen = judge(steady(2), expect=[parse_expectation("rps_ok", "+3%")], noise=calibrated(0.015))
    assert end(unseen) == GOES_ON
    assert {one.state for one in unseen.rows[:-1]} == {"clear"}
    assert unseen.rows[-1].state == "open"


def test_every_gain_that_was_promised_has_to_be_there() -> None:
    expect = [parse_expectation("rps_ok", "+10%"), parse_expectation("out_tok_s", "+10%")]

    def faster(tokens: float) -> Judgement:
        return judge(steady(2, b=level(rps_ok=12.0, out_tok_s=tokens)), expect=expect)

    assert end(faster(345.0)) == (Verdict.IMPROVED, "keep")
    short = faster(328.0)
    assert [one.state for one in short.rows[-2:]] == ["gain", "open"]
    assert end(short) == GOES_ON


def test_a_gain_does_not_pay_for_a_loss_elsewhere() -> None:
    worse = dataclasses.replace(slower("tpot", 1.2), rps_ok=15.0)
    judgement = judge(steady(2, b=worse), expect=[parse_expectation("rps_ok", "+10%")])
    assert end(judgement) == REGRESSED
    assert {reason.text.split(":")[0] for reason in judgement.reasons} == {"tpot_p50 at normal", "tpot_p95 at normal"}


@pytest.mark.parametrize("metric", ["ttft_user", "tpot", "e2e_user"])
def test_ten_percent_more_is_regressed_with_evidence_and_size(metric: str) -> None:
    judgement = judge(steady(2, b=slower(metric, 1.1)))

    assert end(judgement) == REGRESSED
    found = row(judgement, f"{metric}_p50 at normal")
    assert (found.state, found.change) == ("breach", pytest.approx(0.1))
    assert found.evidence is not None
    assert found.evidence < 0.05 / 6
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < 0.1 < found.high


@pytest.mark.parametrize("name", ["rps_ok", "out_tok_s"])
def test_ten_percent_less_throughput_is_regressed(name: str) -> None:
    usual = level().value(name)
    assert usual is not None
    assert end(judge(steady(2, b=level(**{name: usual / 1.1})))) == REGRESSED


def test_size_without_evidence_goes_on_and_evidence_without_size_is_no_harm() -> None:
    noisy = trial(2, lambda number, letter: slower("tpot", 1.1 + (0.4 if number == 2 else -0.2) * (letter == "B")))
    assert end(judge(noisy, noise=calibrated(0.1))) == GOES_ON
    small = judge(steady(4, b=slower("ttft_user", 1.03)), noise=calibrated(0.005, 60))
    assert row(small, "ttft_user_p50 at normal").evidence == pytest.approx(0, abs=1e-4)
    assert end(small) == KEPT_NEUTRAL


def test_a_change_below_the_floor_is_no_harm_whatever_its_percentage() -> None:
    tiny = dict.fromkeys(("p50", "p95", "mean"), 2 * MS)
    before = level(latency={**latencies(), "tpot": tiny})
    after = level(latency={**latencies(), "tpot": {name: 1.3 * value for name, value in tiny.items()}})
    judgement = judge(steady(2, before, after))
    assert end(judgement) == KEPT_NEUTRAL
    assert row(judgement, "tpot_p50 at normal").change == pytest.approx(0.3)


def test_the_first_look_decides_on_gross_harm_alone() -> None:
    judgement = judge(steady(1, b=slower("tpot", 1.3)))
    assert end(judgement) == GOES_ON
    assert "cannot tell a drift" in judgement.reasons[0].text
    assert row(judgement, "tpot_p50 at normal").state == "open"
    assert end(judge(steady(1, b=slower("tpot", 1.5001)))) == REGRESSED


def test_one_pair_decides_nothing_else_however_quiet_the_host_was_when_it_was_calibrated() -> None:
    assert end(judge(steady(1, b=slower("tpot", 1.3)), noise=calibrated(0.001, 60))) == GOES_ON
    assert end(judge(steady(1), noise=calibrated(0.001, 60))) == GOES_ON


def test_between_the_looks_nothing_but_gross_harm_decides() -> None:
    worse = steady(4, b=slower("tpot", 1.3))
    assert end(judge(worse[:3])) == GOES_ON
    assert end(judge(worse[:5])) == GOES_ON
    assert end(judge(worse[:6], schedule=(1, 4))) == GOES_ON
    assert end(judge(steady(2, b=slower("tpot", 2.0))[:3])) == REGRESSED
    assert end(judge(worse[:1])) == GOES_ON


def test_a_hard_event_ends_it_at_any_phase() -> None:
    phases = steady(4)
    phases[4 - 2] = dataclasses.replace(phases[2], events=(event(),))
    judgement = judge(phases[:3])
    assert end(judgement) == REGRESSED
    assert codes(judgement) == ["oom_kill"]
    assert judgement.reasons[0].text.startswith("phase 3 (B): ")


def test_a_hard_event_of_the_saved_configuration_makes_it_invalid() -> None:
    phases = steady(2)
    for index in (0, 3):
        spoilt = [*phases]
        spoilt[index] = dataclasses.replace(phases[index], events=(event(),))
        judgement = judge(spoilt)
        assert end(judgement) == INVALID
        assert codes(judgement) == ["baseline_disturbed"]


def test_gross_harm_takes_more_than_half_of_the_pairs() -> None:
    def wild(*bad: int) -> Judgement:
        return judge(trial(4, lambda number, _: slower("tpot", 5.0 if number in bad else 1.0)))

    assert wild(2).verdict is Verdict.INCONCLUSIVE
    judgement = wild(2, 3, 6)
    assert end(judgement) == REGRESSED
    assert row(judgement, "tpot_p50 at normal").note == "in 3 of 4 pairs"


def test_everything_failing_is_regressed_and_survives_storing() -> None:
    dead = failing(300, "late", latency=unbounded("p50", "p95"), rps_ok=0.0, out_tok_s=0.0, per_prompt={}, finish={})
    judgement = judge(steady(1, b=dead))
    assert end(judgement) == REGRESSED
    assert Judgement.from_json(json.loads(json.dumps(judgement.to_json(), allow_nan=False))) == judgement


def test_an_inconclusive_end_says_how_many_more_pairs_would_decide_it() -> None:
    wobble = {1: 1.0, 2: 1.07, 3: 0.97, 4: 1.0, 5: 1.03, 6: 1.06, 7: 0.99, 8: 1.01}
    judgement = judge(trial(4, lambda number, _: slower("ttft_user", wobble[number])), noise=calibrated(0.035))

    assert end(judgement) == LEFT_TO_THE_PLAN
    assert codes(judgement) == ["undecided", "more_pairs"]
    assert "after 4 of 4 pairs" in judgement.reasons[0].text
    assert "ttft_user_p50 at normal" in judgement.reasons[0].text
    assert judgement.more_pairs is not None
    in_all = 4 + judgement.more_pairs
    assert f"{judgement.more_pairs} more pairs at this noise ({in_all} in all) would" in judgement.reasons[1].text


def test_an_effort_of_one_pair_ends_without_evidence() -> None:
    judgement = judge(steady(1), schedule=(1,))
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert judgement.more_pairs == 1


def test_an_unknown_host_says_so_with_its_verdict() -> None:
    assert "uncalibrated" not in [flag.code for flag in judge(steady(2)).flags]
    judgement = judge(steady(3), noise=NoiseModel())
    assert end(judgement) == KEPT_NEUTRAL
    assert "uncalibrated" in [flag.code for flag in judgement.flags]


def test_offline_services_guard_throughput_and_whole_answers_only() -> None:
    assert end(judge(steady(2, b=slower("ttft_user", 3)), service_class="offline")) == KEPT_NEUTRAL
    assert end(judge(steady(2, b=level(rps_ok=9.0)), service_class="offline")) == REGRESSED
    with pytest.raises(ValueError, match="interactive, offline"):
        judge(steady(2), service_class="batch")


def test_phases_out_of_order_and_more_of_them_than_the_effort_has_are_refused() -> None:
    phases = steady(2)
    for wrong in ([], phases[::-1], [phases[0], phases[0]], steady(4)):
        with pytest.raises(ValueError, match="not those of a trial"):
            judge(wrong, schedule=(1, 2))


def test_a_slower_host_is_not_a_slower_configuration() -> None:
    drifting = trial(4, lambda number, _: slowed(level(), 1.04**number))
    assert end(judge(drifting)) == KEPT_NEUTRAL
    assert end(judge(drifting[:4])) == KEPT_NEUTRAL


def test_a_quick_judgement_has_no_decision_and_an_older_record_still_reads() -> None:
    document = judge(steady(2)).to_json()
    assert document["decision"] == "keep"
    old = {name: value for name, value in document.items() if name not in ("decision", "more_pairs")}
    old["rows"] = [
        {k: v for k, v in one.items() if k not in ("low", "high", "bound", "evidence")} for one in old["rows"]
    ]
    assert Judgement.from_json(old).decision is None


def test_what_lies_at_its_limit_is_not_promised_to_be_decided() -> None:
    judgement = judge(steady(4, b=slower("ttft_user", 1.0499)), noise=calibrated(0.02))
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert judgement.more_pairs is None
    assert "no number of pairs" in judgement.reasons[1].text


def test_a_host_that_steps_between_the_first_two_phases_is_no_harm_of_the_change() -> None:
    """Half of the step looks like an effect; the second pair does not show it."""
    stepped = trial(2, lambda number, _: slowed(level(), 1.0 if number == 1 else 1.12))
    judgement = judge(stepped)
    assert end(judgement) == GOES_ON
    assert row(judgement, "tpot_p50 at normal").change == pytest.approx(0.058, abs=0.002)
    drifting = trial(2, lambda number, letter: slowed(level(), 1.04**number * (1.12 if letter == "B" else 1.0)))
    assert end(judge(drifting)) == REGRESSED
