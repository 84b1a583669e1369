"""How often the judge is right: simulated hosts, every random number drawn from a fixed seed.

Twelve guards that know nothing of each other, three levels of four, with noise between the phases and between the
rounds of a phase (10 of them). A small repetition of a larger trial; the tolerances are those of its size.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy
from tests.unit.core.trial.trial_samples import CHANGED, CONDITIONS

from changectl.core.judging.judgement import Judgement
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.trial.noise_model import NoiseModel, Spread
from changectl.core.trial.order import looks, order
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial

TYPICAL, SHARED = (0.01, 0.015), (0.02, 0.03)  # standard deviations: between phases, between rounds
ROUNDS, LEVELS, REQUESTS = 10, 3, 50
FIGURES = ("e2e_user_p50", "e2e_user_mean", "rps_ok", "out_tok_s")
TRIALS = 70


def deviation(world: tuple[float, float]) -> float:
    return math.hypot(world[0], world[1] / math.sqrt(ROUNDS))


def known(world: tuple[float, float]) -> NoiseModel:
    return NoiseModel(dict.fromkeys(FIGURES, Spread(deviation(world) ** 2, 20.0)))


def measured(name: str, factors: list[float]) -> LevelMeasurement:
    latency = {"e2e_user": {"p50": factors[0], "p95": None, "p99": None, "mean": 1.05 * factors[1]}}
    return LevelMeasurement(
        name=name, n=REQUESTS, ok=REQUESTS, latency=latency, rps_ok=10 / factors[2], out_tok_s=300 / factors[3],
        finish={"stop": REQUESTS}, cache_hit=0.0, lag_p99=0.0, per_prompt={"a": (8.0, 30.0)},
    )  # fmt: skip


def run(
    generator: numpy.random.Generator,
    pairs: int,
    world: tuple[float, float],
    noise: NoiseModel,
    drift: float,
    harm: float,
) -> tuple[Judgement, int]:
    """One trial to its end: its judgement, and after how many pairs."""
    phases: list[TrialPhase] = []
    for number, letter in enumerate(order(pairs), start=1):
        y = generator.normal(0, deviation(world), size=(LEVELS, len(FIGURES))) + drift * number
        y[0][0] += harm if letter == "B" else 0.0
        levels = tuple(measured(f"level{at}", [math.exp(one) for one in own]) for at, own in enumerate(y))
        conditions = CHANGED if letter == "B" else CONDITIONS
        phases.append(TrialPhase(number=number, letter=letter, measurement=Measurement(levels), conditions=conditions))
        if number % 2 == 0 and number // 2 in looks(pairs):
            found = judge_trial(phases, looks(pairs), service_class="offline", noise=noise, declared=("slots",))
            if found.decision != "go_on":
                return found, number // 2
    raise AssertionError("a trial has to end")


def outcomes(
    pairs: int, world: tuple[float, float], noise: NoiseModel, *, drift: float = 0.0, harm: float = 0.0, seed: int = 7
) -> tuple[Counter[str], float]:
    """Verdicts in percent, and the mean number of pairs."""
    generator = numpy.random.default_rng(seed)
    ends = [run(generator, pairs, world, noise, drift, harm) for _ in range(TRIALS)]
    found = Counter(judgement.verdict.value for judgement, _ in ends)
    shares = Counter({name: round(100 * count / TRIALS) for name, count in found.items()})
    return shares, sum(after for _, after in ends) / TRIALS


def test_on_a_typical_host_nothing_is_called_harm_that_is_none_and_nearly_all_is_decided() -> None:
    found, pairs = outcomes(4, TYPICAL, known(TYPICAL))
    assert found["regressed"] <= 1
    assert found["unchanged"] >= 97
    assert 2 <= pairs <= 3


def test_a_drift_of_four_percent_a_phase_does_no_harm() -> None:
    found, pairs = outcomes(4, TYPICAL, known(TYPICAL), drift=0.04)
    assert found["regressed"] <= 1
    assert found["unchanged"] >= 97
    assert 2 <= pairs <= 3


def test_ten_percent_more_of_one_figure_among_twelve_is_found_at_the_second_look() -> None:
    found, pairs = outcomes(4, TYPICAL, known(TYPICAL), harm=math.log(1.1))
    assert found["regressed"] >= 95
    assert pairs < 2.3


def test_a_loss_as_large_as_its_margin_is_hardly_ever_kept() -> None:
    found, _ = outcomes(4, TYPICAL, known(TYPICAL), harm=math.log(1.05))
    assert found["unchanged"] <= 8  # in 800 trials it was 3


def test_an_unknown_host_takes_longer_and_is_as_safe() -> None:
    found, pairs = outcomes(4, TYPICAL, NoiseModel())
    assert found["regressed"] <= 1
    assert found["unchanged"] >= 90
    assert 3 <= pairs <= 4
