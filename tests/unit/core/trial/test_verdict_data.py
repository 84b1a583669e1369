"""What a trial misses, and phases that must not be compared."""

from __future__ import annotations

import dataclasses

import pytest
from tests.unit.core.trial.trial_samples import (
    CHANGED,
    CONDITIONS,
    INVALID,
    KEPT_NEUTRAL,
    LEFT_TO_THE_PLAN,
    REGRESSED,
    codes,
    end,
    few,
    judge,
    latencies,
    level,
    phase,
    row,
    slower,
    steady,
    trial,
)

from changectl.core.judging.conditions import Fingerprint
from changectl.core.judging.judgement import Reason, Verdict
from changectl.core.measuring.metrics import parse_expectation


def test_a_fresh_start_is_what_an_improvement_is_compared_with() -> None:
    expect = [parse_expectation("rps_ok", "+10%")]
    phases = steady(2, b=level(rps_ok=14.0))
    phases[0] = dataclasses.replace(phases[0], fresh=False)
    judgement = judge(phases, expect=expect)
    assert end(judgement) == (Verdict.NO_GROSS_HARM, "policy")
    assert "not_fresh" in [flag.code for flag in judgement.flags]
    worse = [dataclasses.replace(phases[0]), *steady(2, b=slower("tpot", 1.2))[1:]]
    assert end(judge(worse)) == (Verdict.NO_GROSS_HARM, "policy")
    gross = [dataclasses.replace(phases[0]), *steady(2, b=slower("tpot", 1.6))[1:]]
    assert end(judge(gross)) == REGRESSED


def test_p95_is_judged_from_sixty_requests_and_the_mean_below() -> None:
    many = judge(steady(2))
    assert row(many, "ttft_user_p95 at normal").state == "clear"
    assert "ttft_user_mean at normal" not in [one.place for one in many.rows]
    small = trial(2, lambda number, _: few(level()) if number == 3 else level())
    judgement = judge(small)
    assert end(judgement) == KEPT_NEUTRAL
    tail = row(judgement, "ttft_user_p95 at normal")
    assert (tail.state, tail.gap) == ("not measurable", False)
    assert "40 requests in a phase are too few" in tail.note
    assert row(judgement, "ttft_user_mean at normal").state == "clear"


def test_too_few_good_answers_in_one_phase_end_it_without_evidence() -> None:
    for number in range(1, 5):
        few_at = number
        phases = trial(2, lambda own, _, at=few_at: few(level(), 19) if own == at else level())
        judgement = judge(phases)
        assert end(judgement) == LEFT_TO_THE_PLAN
        assert "19 good answers" in judgement.reasons[0].text


def test_a_figure_that_one_phase_lacks_is_never_a_pass() -> None:
    for metric in ("ttft_user", "tpot", "e2e_user"):
        for number in range(1, 5):
            gone = level(latency={**latencies(), metric: {}}, missing={metric: 300})
            phases = trial(2, lambda own, _, at=number, instead=gone: instead if own == at else level())
            assert end(judge(phases)) == LEFT_TO_THE_PLAN
    for name in ("rps_ok", "out_tok_s"):
        gone = level(**{name: None})
        assert end(judge(trial(2, lambda own, _, instead=gone: instead if own == 4 else level()))) == LEFT_TO_THE_PLAN


def test_a_metric_without_meaning_for_any_answer_is_no_gap() -> None:
    single = level(latency={**latencies(), "tpot": {}}, undefined={"tpot": 300})
    judgement = judge(trial(2, lambda *_: single))
    assert end(judgement) == KEPT_NEUTRAL
    assert row(judgement, "tpot_p50 at normal").state == "not defined"


def test_an_expected_gain_without_data_is_never_seen() -> None:
    judgement = judge(steady(2), expect=[parse_expectation("load_time", "-10%")])
    assert end(judgement) == LEFT_TO_THE_PLAN
    assert judgement.rows[-1].gap


def test_unequal_work_leaves_only_what_counts_per_token() -> None:
    shorter = level(per_prompt={"a": (8.0, 24.0)}, rps_ok=15.0, out_tok_s=400.0)
    judgement = judge(steady(2, b=shorter))
    assert end(judgement) == KEPT_NEUTRAL
    assert {row(judgement, f"{name} at normal").state for name in ("e2e_user_p50", "rps_ok")} == {"unequal work"}
    assert "unequal_work" in [flag.code for flag in judgement.flags]
    expected = judge(steady(2, b=shorter), expect=[parse_expectation("rps_ok", "+10%")])
    assert end(expected) == LEFT_TO_THE_PLAN
    assert end(judge(steady(2, b=shorter), service_class="offline")) == INVALID


def test_one_phase_of_other_work_is_enough_to_make_work_unequal() -> None:
    phases = trial(2, lambda number, _: level(per_prompt={"a": (8.0, 24.0 if number == 4 else 30.0)}))
    assert row(judge(phases), "rps_ok at normal").note.startswith("phase 4 (A) against phase 1 (A): ")


@pytest.mark.parametrize(
    ("spoilt", "code"),
    [
        ({"cache_hit": 0.03}, "cache_state_differs"),
        ({"per_prompt": {"a": (9.0, 30.0)}}, "unequal_input"),
        ({"lag_p99": 0.05}, "generator_late"),
        ({"name": "peak"}, "levels_differ"),
    ],
)
@pytest.mark.parametrize("number", [2, 3, 4])
def test_every_phase_has_to_be_comparable(spoilt: dict[str, object], code: str, number: int) -> None:
    judgement = judge(trial(2, lambda own, _: level(**spoilt) if own == number else level()))
    assert end(judgement) == INVALID
    assert codes(judgement) == [code]
    assert judgement.reasons[0].text.startswith(f"phase {number} (")


def test_what_spoils_the_first_phase_is_said_once() -> None:
    judgement = judge(trial(2, lambda own, _: level(lag_p99=0.05) if own == 1 else level()))
    assert codes(judgement) == ["generator_late"]


def test_a_failed_measurement_makes_it_invalid() -> None:
    phases = steady(2)
    phases[3] = phase(4, "A", invalid=("load generator: exit status 3",))
    assert codes(judge(phases)) == ["measurement_failed"]


def test_nothing_but_the_declared_change_may_differ_and_that_only_between_the_configurations() -> None:
    other = Fingerprint({**CHANGED.facts, "kernel": "6.1"})
    moved = Fingerprint({**CHANGED.facts, "settings": {"slots": "16"}})
    for number, conditions in ((2, other), (3, other), (3, moved), (4, CHANGED)):
        phases = steady(2)
        phases[number - 1] = dataclasses.replace(phases[number - 1], conditions=conditions)
        judgement = judge(phases)
        assert end(judgement) == INVALID
        assert set(codes(judgement)) == {"conditions_differ"}
    assert "settings.slots" in judgement.reasons[0].text
    assert end(judge(steady(2), declared=())) == INVALID


def test_what_could_not_be_read_is_not_taken_for_equal() -> None:
    blind = Fingerprint({**CONDITIONS.facts, "model": None})
    all_blind = [dataclasses.replace(one, conditions=blind) for one in steady(2)]
    assert set(codes(judge(all_blind, declared=("model", "slots")))) == {"conditions_unknown"}
    foggy = [
        dataclasses.replace(one, conditions=Fingerprint({**one.conditions.facts, "kernel": None})) for one in steady(2)
    ]
    judgement = judge(foggy)
    assert end(judgement) == KEPT_NEUTRAL
    assert "kernel" in next(flag.text for flag in judgement.flags if flag.code == "conditions_unknown")


def test_a_lost_phase_is_judged_without() -> None:
    phases = steady(3, b=slower("tpot", 1.1))
    assert end(judge([one for one in phases if one.number != 3])) == REGRESSED
    assert end(judge([one for one in steady(3) if one.number != 4])) == KEPT_NEUTRAL


def test_what_was_observed_is_shown_once_and_judged_by_nobody() -> None:
    seen = Reason("swapped_in", "the host read back from swap")
    phases = [dataclasses.replace(one, observations=(seen,)) for one in steady(2)]
    judgement = judge(phases)
    assert (end(judgement), judgement.flags) == (KEPT_NEUTRAL, (seen,))
