"""What past trials say about noise, and where a new one may take it over."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.unit.core.trial.trial_samples import judge, level, slowed, steady, trial

from changectl.core.trial.noise_learned import LASTS, Learned, known, learned, tells_noise
from changectl.core.trial.noise_model import NOTHING_KNOWN, Spread
from changectl.core.trial.phases import TrialPhase

NOW = "2026-11-30T12:00:00+00:00"
HERE = {"kernel": "6.1", "processors": ["x", 8, 8], "engine_version": "b1", "levels": {"peak": "16 streams"}}
FOUND = Learned("2026-11-29T12:00:00+00:00", HERE, {"ttft_user_p50 at peak": Spread(0.0004, 5.0)}, "R1")


def test_two_trials_of_four_pairs_calibrate_a_host() -> None:
    once, twice = known([FOUND], HERE, NOW), known([FOUND, replace(FOUND, run="R2")], HERE, NOW)

    assert once.of("ttft_user_p50 at peak").source == "uncalibrated"
    assert twice.of("ttft_user_p50 at peak").source == "calibrated"
    assert twice.of("ttft_user_p50 at peak").spread == Spread(0.0004, 10.0)


def test_a_figure_that_was_never_measured_stays_uncalibrated() -> None:
    assert known([FOUND] * 9, HERE, NOW).of("tpot_p50 at peak").source == "uncalibrated"


@pytest.mark.parametrize("name", HERE)
def test_nothing_is_taken_over_where_anything_is_otherwise(name: str) -> None:
    assert known([FOUND] * 9, {**HERE, name: "another"}, NOW) == NOTHING_KNOWN


@pytest.mark.parametrize("name", HERE)
def test_nothing_is_taken_over_where_it_is_not_known_whether_it_is_alike(name: str) -> None:
    unknown = {**HERE, name: None}
    assert known([replace(FOUND, alike=unknown)] * 9, unknown, NOW) == NOTHING_KNOWN


def test_it_expires() -> None:
    def after(age: timedelta) -> bool:
        at = (datetime.fromisoformat(NOW) - age).isoformat()
        return known([replace(FOUND, at=at)], HERE, NOW) != NOTHING_KNOWN

    assert (after(LASTS), after(LASTS + timedelta(seconds=1))) == (True, False)


def test_a_trial_of_one_pair_tells_nothing_of_noise() -> None:
    assert learned(steady(1), HERE, NOW, "R1") is None


def test_what_a_trial_found_out_survives_the_record() -> None:
    uneven = trial(2, lambda number, letter: slowed(level(), 1 + number % 3 / 100))
    found = learned(uneven, HERE, NOW, "R1")

    assert found is not None
    assert found.spreads["ttft_user_p50 at normal"].df == 1
    assert Learned.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)), NOW, "R1") == found


@given(some.dictionaries(some.text(), some.none() | some.text() | some.floats() | some.lists(some.text())))
def test_what_is_no_such_thing_is_an_error_of_its_own(raw: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="noise"):
        Learned.from_json(raw, NOW, "R1")


@pytest.mark.parametrize(
    ("phases", "tells"),
    [
        (steady(3), True),
        (steady(3, level(), slowed(level(), 1.3)), False),
        (trial(4, lambda number, _: slowed(level(), 5.0 if number == 3 else 1.0)), False),
    ],
)
def test_neither_harm_nor_a_phase_unlike_the_others_is_taken_for_noise(phases: list[TrialPhase], tells: bool) -> None:
    assert tells_noise(judge(phases)) is tells
