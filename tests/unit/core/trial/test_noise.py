"""What every trial teaches about its host."""

from __future__ import annotations

import math

import numpy
from tests.unit.core.trial.trial_samples import calibrated, latencies, level, phase, row, slowed, steady, trial

from changectl.core.judging.judgement import Verdict
from changectl.core.measuring.metrics import METRICS, MetricRef
from changectl.core.trial.estimate import fit
from changectl.core.trial.noise import noise_of, points_of, spreads_of
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import looks
from changectl.core.trial.verdict import judge_trial

TPOT = MetricRef(METRICS["tpot"], "p50", "normal")
RATE = MetricRef(METRICS["rps_ok"], None, "normal")


def test_phases_that_do_not_differ_have_no_spread_and_neither_effect_nor_drift_is_one() -> None:
    other = trial(4, lambda number, letter: slowed(level(), 1.3 * 1.01**number if letter == "B" else 1.01**number))
    for phases in (steady(4), other):
        found = spreads_of(phases)
        assert set(found) >= {
            "ttft_user_p50 at normal",
            "tpot_p95 at normal",
            "e2e_user_mean at normal",
            "rps_ok at normal",
        }
        assert all(one.variance < 1e-12 and one.df == 5 for one in found.values())


def test_what_is_left_over_is_the_spread() -> None:
    wobble = {1: 1.0, 2: 1.02, 3: 0.99, 4: 1.0}
    found = spreads_of(trial(2, lambda number, _: level(latency=latencies(tpot=wobble[number]))))

    assert found["tpot_p50 at normal"].df == 1
    assert found["tpot_p50 at normal"].variance > 1e-6
    assert found["rps_ok at normal"].variance < 1e-12


def test_each_level_has_a_spread_of_its_own() -> None:
    wobble = [1.0, 1.02, 0.99, 1.0, 1.03, 0.98, 1.0, 1.01]
    found = spreads_of(trial(4, lambda number, _: [level("low"), slowed(level("peak"), wobble[number - 1])]))
    assert (found["tpot_p50 at low"].df, found["tpot_p50 at peak"].df) == (5, 5)
    assert found["tpot_p50 at low"].variance < 1e-12 < 1e-5 < found["tpot_p50 at peak"].variance


def test_one_pair_and_a_figure_that_a_phase_lacks_teach_nothing() -> None:
    assert spreads_of(steady(1)) == {}
    phases = trial(4, lambda number, _: level(rps_ok=None if number == 2 else 10.0))
    assert "rps_ok at normal" not in spreads_of(phases)
    told = [phase(one.number, one.letter, facts={"load_time": 8.0}) for one in steady(2)]
    assert spreads_of(told)["load_time"].df == 1


def test_a_host_is_calibrated_by_its_own_trials() -> None:
    generator = numpy.random.default_rng(5)
    model = NoiseModel()
    first = judge_trial(steady(2), looks(4), declared=("slots",))
    assert first.decision == "go_on"
    assert "its evidence counts after 3 pairs" in row(first, "rps_ok at normal").note
    for _ in range(4):
        wobble = generator.normal(0, 0.005, 9)
        phases = trial(4, lambda number, _, by=wobble: slowed(level(), math.exp(by[number])))
        model = model.updated(spreads_of(phases))

    own = model.of("rps_ok at normal")
    assert own.source == "calibrated"
    assert 0.003 < own.spread.deviation < 0.008
    assert judge_trial(steady(2), looks(4), declared=("slots",), noise=model).verdict is Verdict.UNCHANGED


def test_what_one_figure_says_against_its_known_noise_is_believed() -> None:
    wobble = {1: 1.0, 2: 1.2, 3: 0.9, 4: 1.1}
    phases = trial(2, lambda number, _: level(latency=latencies(tpot=wobble[number])))
    found, fitted = noise_of(phases, calibrated(0.01)), fit(points_of(TPOT, phases))
    assert fitted is not None
    assert not found.doubted
    assert found.estimate(TPOT, fitted).spread == fitted.residual


def test_a_host_whose_figures_all_differ_more_than_was_known_is_judged_by_its_own_phases() -> None:
    wobble = {1: 1.0, 2: 1.2, 3: 0.9, 4: 1.1}
    found = noise_of(trial(2, lambda number, _: slowed(level(), wobble[number])), calibrated(0.01))
    assert found.doubted == {("body", "calibrated"), ("tail", "calibrated")}
    quiet = fit(points_of(TPOT, steady(2)))
    assert quiet is not None
    # One figure that was quiet by chance has no part in it: the others say what the host is like.
    assert found.estimate(TPOT, quiet).spread.variance > 0.01


def test_figures_as_noisy_as_known_are_pooled_with_that() -> None:
    wobble = {1: 1.0, 2: 1.01, 3: 0.99, 4: 1.0}
    phases = trial(2, lambda number, _: slowed(level(), wobble[number]))
    found = noise_of(phases, calibrated(0.01))
    fitted = fit(points_of(RATE, phases))
    assert fitted is not None
    assert not found.doubted
    assert found.estimate(RATE, fitted).spread.df == 31


def test_what_the_engine_tells_of_a_phase_has_no_part_in_the_noise_of_the_load() -> None:
    """A busy host: rates and times of phases differ by a fifth, and the cache holds the same in every one."""
    wobble = (1.0, 1.25, 0.85, 1.2, 0.8, 1.15, 0.9, 1.3)
    phases = [
        phase(one.number, one.letter, slowed(level(), wobble[one.number - 1]), facts={"kv_capacity": 4096.0})
        for one in steady(4)
    ]
    judged = judge_trial(phases, looks(4), declared=("slots",))

    assert row(judged, "kv_capacity").state == "clear"
    assert row(judged, "rps_ok at normal").state == "open"
