"""What holds of the judge of trials whatever the figures are."""

from __future__ import annotations

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.core.trial.trial_samples import FIGURES, calibrated, level, phase, row, slowed, trial

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.metrics import parse_expectation, parse_guard
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import looks, order
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial

few_examples = settings(max_examples=40, deadline=None)
wobbles = st.lists(st.floats(-0.05, 0.05), min_size=8, max_size=8)
noises = st.sampled_from([NoiseModel(), calibrated(0.01), calibrated(0.03, 12), calibrated(0.0)])
sizes = st.sampled_from([1, 2, 3, 4])


def judge(phases: list[TrialPhase], noise: NoiseModel, **given_: object) -> Judgement:
    return judge_trial(phases, looks(4), noise=noise, declared=("slots",), **given_)  # type: ignore[arg-type]


def worlds(
    pairs: int, wobble: list[float], effect: float = 0.0, drift: float = 0.0, scale: float = 1.0
) -> list[TrialPhase]:
    """Phases whose every figure is slowed by chance, by the change and by a drift."""

    def made(number: int, letter: str) -> LevelMeasurement:
        y = wobble[number - 1] + drift * number + (effect if letter == "B" else 0.0)
        return slowed(level(), scale * math.exp(y))

    return trial(pairs, made)


@few_examples
@given(sizes, wobbles, noises, st.floats(-0.05, 0.05))
def test_a_drift_that_is_linear_in_the_phase_leaves_every_effect_as_it_was(
    pairs: int, wobble: list[float], noise: NoiseModel, drift: float
) -> None:
    plain, drifting = (judge(worlds(pairs, wobble, drift=by), noise) for by in (0.0, drift))
    if pairs > 1:
        place = "rps_ok at normal"
        assert row(drifting, place).change == pytest.approx(row(plain, place).change, abs=1e-9)
        assert row(drifting, place).high == pytest.approx(row(plain, place).high, abs=1e-6)


@few_examples
@given(st.sampled_from([2, 3, 4]), wobbles, noises)
def test_swapping_the_letters_turns_the_effect_round(pairs: int, wobble: list[float], noise: NoiseModel) -> None:
    phases = worlds(pairs, wobble, effect=0.03)
    swapped = [phase(one.number, "A" if one.letter == "B" else "B", *one.measurement.levels) for one in phases]
    one, other = (row(judge(own, noise), "tpot_p50 at normal").change for own in (phases, swapped))
    assert one is not None
    assert other is not None
    assert (1 + one) * (1 + other) == pytest.approx(1)


@few_examples
@given(sizes, wobbles, noises, st.floats(-0.2, 0.2), st.floats(0.5, 20))
def test_a_host_that_is_as_a_whole_faster_or_slower_changes_no_relative_figure(
    pairs: int, wobble: list[float], noise: NoiseModel, effect: float, scale: float
) -> None:
    plain, scaled = (judge(worlds(pairs, wobble, effect, scale=by), noise) for by in (1.0, scale))
    for place in ("rps_ok at normal", "out_tok_s at normal"):
        one, other = row(plain, place), row(scaled, place)
        assert one.state == other.state
        assert other.change == pytest.approx(one.change, abs=1e-9)


@few_examples
@given(sizes, wobbles, noises, st.floats(0, 0.3), st.floats(0.001, 1))
def test_more_harm_never_turns_regressed_into_anything_else(
    pairs: int, wobble: list[float], noise: NoiseModel, effect: float, more: float
) -> None:
    expect = [parse_expectation("rps_ok", "+3%")]
    if judge(worlds(pairs, wobble, effect), noise, expect=expect).verdict is Verdict.REGRESSED:
        assert judge(worlds(pairs, wobble, effect + more), noise, expect=expect).verdict is Verdict.REGRESSED


@few_examples
@given(sizes, wobbles, noises, st.floats(-0.3, 0.3), st.randoms(use_true_random=False))
def test_the_order_of_limits_and_gains_changes_nothing(
    pairs: int, wobble: list[float], noise: NoiseModel, effect: float, random: object
) -> None:
    limits = [
        parse_guard("ttft_user_p50", "<= 110ms"), parse_guard("tpot", "<= 24ms"), parse_guard("failures", "<= 2%"),
        parse_guard("e2e_user_p95 at normal", "<= 900ms"),
    ]  # fmt: skip
    gains = [parse_expectation("rps_ok", "+10%"), parse_expectation("out_tok_s", "+5%")]
    phases = worlds(pairs, wobble, effect)
    plain = judge(phases, noise, slo=limits, expect=gains)
    random.shuffle(limits)  # type: ignore[attr-defined]
    turned = judge(phases, noise, slo=limits, expect=gains[::-1])

    assert (turned.verdict, turned.decision, turned.more_pairs) == (plain.verdict, plain.decision, plain.more_pairs)
    assert sorted(map(str, turned.rows)) == sorted(map(str, plain.rows))


@few_examples
@given(st.sampled_from([*FIGURES, "rps_ok", "out_tok_s"]), st.integers(1, 4), wobbles, noises, st.floats(-0.3, 0.0))
def test_a_figure_that_is_missing_anywhere_is_never_a_pass(
    metric: str, number: int, wobble: list[float], noise: NoiseModel, effect: float
) -> None:
    phases = worlds(2, wobble, effect)
    spoilt = phases[number - 1].measurement.levels[0]
    if metric in FIGURES:
        spoilt = dataclasses.replace(spoilt, latency={**spoilt.latency, metric: {}})
    else:
        spoilt = dataclasses.replace(spoilt, **{metric: None})
    phases[number - 1] = phase(number, phases[number - 1].letter, spoilt)

    assert judge(phases, noise).decision != "keep"
    assert judge(phases, noise, expect=[parse_expectation("rps_ok", "+3%")]).decision != "keep"


maybe = st.none() | st.just(math.inf) | st.floats(0, 1e6)
statistics = st.fixed_dictionaries({"p50": maybe, "p95": maybe, "p99": maybe, "mean": st.none() | st.floats(0, 1e6)})


@st.composite
def any_levels(draw: st.DrawFn) -> LevelMeasurement:
    n = draw(st.integers(0, 200))
    ok = draw(st.integers(0, n))
    finite = st.none() | st.floats(0, 1e6)
    return level(
        n=n, ok=ok, failures={"late": n - ok} if n > ok else {}, finish={"stop": ok} if ok else {},
        latency={metric: draw(statistics) for metric in FIGURES}, rps_ok=draw(finite), out_tok_s=draw(finite),
        cache_hit=draw(st.sampled_from([None, 0.0, 0.01])), lag_p99=draw(st.none() | st.floats(0, 0.01)),
    )  # fmt: skip


@few_examples
@given(st.integers(1, 6).flatmap(lambda count: st.lists(any_levels(), min_size=count, max_size=count)), noises)
def test_no_figures_whatever_they_are_bring_nan_and_all_survive_storing(
    levels: list[LevelMeasurement], noise: NoiseModel
) -> None:
    phases = [
        phase(number, letter, own) for number, (letter, own) in enumerate(zip(order(4), levels, strict=False), start=1)
    ]
    guards = [parse_guard("ttft_user_p95", "<= 800ms"), parse_guard("failures", "<= 1%")]
    gains = [parse_expectation("tpot", "-10%"), parse_expectation("failures", "-50%")]
    for given_ in ({}, {"slo": guards}, {"slo": guards, "expect": gains}):
        judgement = judge(phases, noise, **given_)
        text = json.dumps(judgement.to_json(), allow_nan=False)
        assert Judgement.from_json(json.loads(text)) == judgement
        assert "nan" not in " ".join(str(one) for one in (*judgement.rows, *judgement.reasons, *judgement.flags))
