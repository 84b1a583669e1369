"""What is known of a host's noise, and what every trial adds to it."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.trial.noise_model import ENOUGH, PRIOR, NoiseModel, Spread, pooled


def parts(spread: Spread) -> tuple[float, float]:
    return spread.variance, spread.df


def test_a_host_that_nobody_knows_gets_the_prior() -> None:
    noise = NoiseModel().of("tpot_p50")

    assert noise.source == "uncalibrated"
    assert parts(noise.spread) == (pytest.approx(1e-4), 3.0)
    assert noise.spread.deviation == pytest.approx(0.01)


def test_a_little_of_its_own_is_pooled_with_the_prior_and_enough_stands_alone() -> None:
    little = NoiseModel({"tpot_p50": Spread(9e-4, 5)}).of("tpot_p50")
    enough = NoiseModel({"tpot_p50": Spread(9e-4, ENOUGH)}).of("tpot_p50")

    assert little.source == "uncalibrated"
    assert parts(little.spread) == (pytest.approx((3 * 1e-4 + 5 * 9e-4) / 8), 8)
    assert (enough.source, enough.spread) == ("calibrated", Spread(9e-4, ENOUGH))


def test_another_figure_is_not_known_by_that() -> None:
    assert NoiseModel({"tpot_p50": Spread(9e-4, 50)}).of("tpot_p95").source == "uncalibrated"


def test_every_trial_adds_its_degrees_of_freedom() -> None:
    once = NoiseModel().updated({"rps_ok": Spread(4e-4, 5)})
    twice = once.updated({"rps_ok": Spread(1e-4, 5), "tpot_p50": Spread(1e-4, 5)})

    assert parts(twice.measured["rps_ok"]) == (pytest.approx(2.5e-4), 10)
    assert twice.of("rps_ok").source == "calibrated"
    assert twice.of("tpot_p50").source == "uncalibrated"
    assert twice.updated({}) == twice


def test_pooling_nothing_knows_nothing() -> None:
    assert pooled() == Spread(0.0, 0.0)
    assert parts(pooled(Spread(5.0, 0.0), PRIOR)) == (pytest.approx(PRIOR.variance), PRIOR.df)


@pytest.mark.parametrize(("variance", "df"), [(-1.0, 3.0), (math.nan, 3.0), (1.0, math.inf), (1.0, -1.0)])
def test_what_is_no_variance_is_refused(variance: float, df: float) -> None:
    with pytest.raises(ValueError):
        Spread(variance, df)


spreads = st.builds(Spread, st.floats(0, 1e3), st.just(0.0) | st.floats(1, 1e3))


@given(st.dictionaries(st.text(max_size=5), spreads))
def test_a_model_survives_storing(measured: dict[str, Spread]) -> None:
    model = NoiseModel(measured)
    assert NoiseModel.from_json(json.loads(json.dumps(model.to_json(), allow_nan=False))) == model


@pytest.mark.parametrize("raw", [{}, {"measured": {"a": 3}}, {"measured": {"a": {"df": 1}}}])
def test_what_is_no_model_is_refused(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="noise model"):
        NoiseModel.from_json(raw)


@given(spreads, spreads)
def test_pooling_lies_between_both_and_does_not_care_for_their_order(one: Spread, other: Spread) -> None:
    both = pooled(one, other)
    assert both == pooled(other, one)
    if both.df:
        known = [spread.variance for spread in (one, other) if spread.df]
        assert min(known) * (1 - 1e-9) <= both.variance <= max(known) * (1 + 1e-9)


def test_a_level_has_its_own_noise_and_else_that_of_all_levels() -> None:
    model = NoiseModel({"tpot_p50": Spread(1e-4, 20), "tpot_p50 at peak": Spread(9e-4, 20)})

    assert model.of("tpot_p50 at peak").spread.variance == 9e-4
    assert model.of("tpot_p50 at low").spread.variance == 1e-4
    assert NoiseModel({"tpot_p50 at low": Spread(1e-4, 20)}).of("tpot_p50 at peak").source == "uncalibrated"
