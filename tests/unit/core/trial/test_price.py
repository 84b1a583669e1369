"""What an effort costs and what it can see, before anything starts."""

from __future__ import annotations

import math

import pytest

from changectl.core.trial.noise_model import PRIOR, NoiseModel, Spread
from changectl.core.trial.order import Times
from changectl.core.trial.price import price, smallest_provable, smallest_visible

TYPICAL = Spread(0.01**2, 30)


def test_more_pairs_less_noise_and_fewer_guards_see_more() -> None:
    assert smallest_visible(4, TYPICAL, 12) < smallest_visible(2, TYPICAL, 12)
    assert smallest_visible(4, TYPICAL, 12) < smallest_visible(4, Spread(0.02**2, 30), 12)
    assert smallest_visible(4, TYPICAL, 12) < smallest_visible(4, PRIOR, 12)
    assert smallest_visible(4, TYPICAL, 2) < smallest_visible(4, TYPICAL, 12)
    assert smallest_provable(4, TYPICAL) < smallest_provable(4, PRIOR)


def test_the_figure_is_that_of_the_formula() -> None:
    # 2 pairs, 30 + 1 degrees of freedom, one guard: t(1 - 0.003) = 2.9500, t(1 - 0.0173) = 2.2103, t(0.8) = 0.8534;
    # theta's error is 1 %
    assert smallest_visible(2, TYPICAL, 1) == pytest.approx(math.expm1((2.9500 + 0.8534) * 0.01), rel=1e-3)
    assert smallest_provable(2, TYPICAL) == pytest.approx(math.expm1((2.2103 + 0.8534) * 0.01), rel=1e-3)


def test_a_typical_host_sees_less_than_the_margin_within_the_standard_effort() -> None:
    assert 0.01 < smallest_visible(4, TYPICAL, 12) < 0.05
    assert smallest_provable(4, TYPICAL) < 0.05


def test_one_pair_sees_gross_harm_alone_and_an_unknown_host_needs_a_third() -> None:
    known = NoiseModel({"rps_ok": TYPICAL})
    for noise, pairs, blind in ((known, 1, True), (known, 2, False), (NoiseModel(), 2, True), (NoiseModel(), 3, False)):
        (sight,) = price(pairs, Times(2, 10), noise, ["rps_ok"], 1).sights
        assert (sight.provable is None) == blind
        assert (sight.visible == 0.5) == blind


def test_the_price_in_sentences() -> None:
    noise = NoiseModel({"ttft_user_p50": TYPICAL, "tpot_p50": TYPICAL})
    found = price(4, Times(120, 300, 5), noise, ["ttft_user_p50", "rps_ok", "tpot_p50"], 9)
    head, known, unknown = found.sentences()

    assert head.startswith("4 pairs: 8 phases and at most 9 starts, at most 58.4m, in 18.4m of which the service is")
    assert "(ttft_user_p50, tpot_p50)" in known
    assert "A regression of 3.3% or more would be found 4 times out of 5" in known
    assert "(rps_ok; uncalibrated)" in unknown


def test_the_price_of_one_pair_promises_nothing_but_gross_harm() -> None:
    _, told = price(1, Times(2, 10), NoiseModel(), ["rps_ok"], 1).sentences()
    assert told == "So few pairs see gross harm alone: 50% or more (rps_ok; uncalibrated)."


def test_what_can_be_seen_is_told_for_the_noisiest_level() -> None:
    model = NoiseModel({"rps_ok at low": TYPICAL, "rps_ok at peak": Spread(0.03**2, 30)})
    both, quiet, unknown = (
        price(4, Times(load=1.0, phase=1.0), model, ["rps_ok"], 1, levels).sights[0]
        for levels in (["low", "peak"], ["low"], ["low", "night"])
    )
    assert both.visible == pytest.approx(smallest_visible(4, Spread(0.03**2, 30), 1))
    assert quiet.visible == pytest.approx(smallest_visible(4, TYPICAL, 1))
    assert unknown.source == "uncalibrated"
