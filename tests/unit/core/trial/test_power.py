"""What an effort can decide, told before any start: by the host's own noise it is certain, by a guess it is not."""

from __future__ import annotations

from typing import Any

import pytest

from changectl.core.measuring.metrics import Expectation, parse_guard, parse_metric
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel, Spread
from changectl.core.trial.order import PAIRS
from changectl.core.trial.power import Blind, blind_spots

FIGURES = ("ttft_user_p50", "tpot_p50", "e2e_user_p50", "rps_ok", "out_tok_s")
USUAL = {"ttft_user_p50 at normal": 0.5, "tpot_p50 at normal": 0.05, "e2e_user_p50 at normal": 2.0}
QUIET, TYPICAL, SHARED = 0.005, 0.01, 0.02  # between phases, as the worlds of the proof


def noisy(deviation: float, df: float = 10) -> NoiseModel:
    return NoiseModel({f"{figure} at normal": Spread(deviation**2, df) for figure in FIGURES})


def blind(noise: NoiseModel, pairs: int = PAIRS["standard"], **more: Any) -> tuple[Blind, ...]:
    given: dict[str, Any] = {"service_class": "interactive", "guards": (), "expect": (), "levels": ["normal"]}
    return blind_spots(pairs, noise, more.pop("usual", USUAL), **{**given, **more})


@pytest.mark.parametrize("noise", [NOTHING_KNOWN, noisy(QUIET), noisy(TYPICAL)], ids=["unknown", "quiet", "typical"])
def test_what_is_shipped_decides_every_margin_also_where_nobody_knows_the_noise(noise: NoiseModel) -> None:
    assert blind(noise) == ()


def test_a_shared_host_is_too_noisy_for_the_standard_effort_and_not_for_a_thorough_one() -> None:
    found = blind(noisy(SHARED))
    assert {one.enough for one in found} <= {5, 6}
    assert all(one.certain for one in found)
    assert blind(noisy(SHARED), PAIRS["thorough"]) == ()


def test_what_no_trial_decides_is_told_as_such() -> None:
    found = blind(noisy(0.1), PAIRS["thorough"])
    assert len(found) == len(FIGURES)
    assert {one.enough for one in found} == {None}
    assert found[0].text.startswith("ttft_user_p50 at normal: a margin of 5%, and 8 pairs decide ")


def test_a_guess_is_never_certain() -> None:
    found = blind(noisy(0.1, df=3))
    assert found
    assert not any(one.certain for one in found)


def test_one_pair_of_a_known_host_sees_gross_harm_alone() -> None:
    (one, *_) = blind(noisy(QUIET), pairs=1)
    assert one.text.endswith("1 pair decides gross harm alone")
    assert one.enough == 2


def test_what_is_less_than_a_figure_s_floor_is_never_harm_so_it_need_not_be_told() -> None:
    small = {"ttft_user_p50 at normal": 0.02, "tpot_p50 at normal": 0.002, "e2e_user_p50 at normal": 0.05}
    named = {one.text.partition(" at ")[0] for one in blind(noisy(0.05), usual=small)}
    assert named == {"rps_ok", "out_tok_s"}


def test_of_a_figure_whose_size_is_not_known_a_margin_is_never_certain() -> None:
    certain = {one.text.partition(" at ")[0] for one in blind(noisy(0.1), usual={}) if one.certain}
    assert certain == {"rps_ok", "out_tok_s"}


def test_an_absolute_limit_takes_the_margin_s_place_and_is_not_looked_at() -> None:
    guards = [parse_guard(name, limit, "slo") for name, limit in (("rps_ok", ">= 1 rps"), ("ttft_user", "<= 9s"))]
    named = {one.text.partition(" at ")[0] for one in blind(noisy(0.1), guards=guards)}
    assert named == {"tpot_p50", "e2e_user_p50", "out_tok_s"}


@pytest.mark.parametrize(("gain", "left"), [(0.03, 1), (0.30, 0)])
def test_an_expected_gain_has_to_be_large_enough_to_be_seen(gain: float, left: int) -> None:
    expect = [Expectation(parse_metric("rps_ok at normal"), gain)]
    found = [one for one in blind(noisy(SHARED), expect=expect) if "gain" in one.text]
    assert len(found) == left
