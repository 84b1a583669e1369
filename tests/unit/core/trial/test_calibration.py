"""What a calibration learns: how many phases it needs, and which of them teach anything."""

from __future__ import annotations

import pytest

from changectl.core.trial.calibration import Calibration, blindest, pairs_needed, told
from changectl.core.trial.estimate import Point, drift_alone
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel, Spread

FIGURES, LEVELS = ("ttft_user_p50", "rps_ok"), ("low", "peak")


def model(df: float, variance: float = 0.005**2, figures: tuple[str, ...] = FIGURES) -> NoiseModel:
    return NoiseModel({f"{figure} at {level}": Spread(variance, df) for figure in figures for level in LEVELS})


@pytest.mark.parametrize(("df", "pairs"), [(0, 6), (3, 5), (4, 4), (8, 2), (9.5, 2), (10, 0), (20, 0)])
def test_it_takes_the_phases_that_are_missing_until_a_host_counts_as_calibrated(df: float, pairs: int) -> None:
    assert pairs_needed(model(df) if df else NOTHING_KNOWN, FIGURES, LEVELS) == pairs


def test_the_figure_that_is_known_least_decides() -> None:
    known = model(20).updated({})
    least = NoiseModel({**known.measured, "rps_ok at peak": Spread(0.0001, 2)})
    assert pairs_needed(least, FIGURES, LEVELS) == 5


def test_a_figure_that_the_service_does_not_have_asks_for_no_phases() -> None:
    assert pairs_needed(model(12, figures=("rps_ok",)), FIGURES, LEVELS) == 0


def test_a_drift_is_no_noise_and_what_is_beside_it_is() -> None:
    drifting = [Point(number, "A", 0.1 * number) for number in range(1, 7)]
    assert drift_alone(drifting).variance == pytest.approx(0, abs=1e-12)
    assert drift_alone(drifting).df == 4

    zigzag = [Point(number, "A", 0.1 * number + 0.01 * (-1) ** number) for number in range(1, 101)]
    assert drift_alone(zigzag).deviation == pytest.approx(0.01, rel=0.05)


def test_two_phases_tell_no_noise_from_a_drift() -> None:
    assert drift_alone([Point(1, "A", 0.0), Point(2, "A", 1.0)]) == Spread(0.0, 0.0)


def test_what_is_seen_is_told_of_the_figure_that_is_seen_least() -> None:
    noisy = NoiseModel({**model(20).measured, "rps_ok at peak": Spread(0.03**2, 20)})
    seen, before = blindest(noisy, FIGURES, LEVELS), blindest(NOTHING_KNOWN, FIGURES, LEVELS)
    assert seen.figures == ("rps_ok",)
    assert "uncalibrated" not in told(seen)
    assert "uncalibrated: 1 % between phases is a guess" in told(before)


def test_who_says_how_much_is_measured_is_not_told_that_enough_is_known() -> None:
    assert [Calibration().by_need, Calibration(pairs=2).by_need, Calibration(seconds=60.0).by_need] == [
        True,
        False,
        False,
    ]
