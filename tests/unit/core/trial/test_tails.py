"""More answers that take far longer than the others are harm, which a P95 hides and a count shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
import pytest
from tests.unit.core.trial.trial_samples import (
    GOES_ON,
    KEPT_NEUTRAL,
    REGRESSED,
    end,
    judge,
    latencies,
    level,
    row,
    steady,
    trial,
)

from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.statistics import far
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import Letter


def tailed(slow: int, **p95: float) -> LevelMeasurement:
    """A sound level of 300 requests of which so many took more than twice the median; with factors of the P95."""
    found = latencies()
    for metric, factor in p95.items():
        found[metric]["p95"] = (found[metric]["p95"] or 0.0) * factor
    return level(latency=found, far={"ttft_user": slow})


def leaping(number: int, letter: Letter) -> LevelMeasurement:
    """One request in twenty is three times as slow with B, and its P95 lies before that step, or beyond it."""
    return tailed(15, ttft_user=2.0 if number % 2 else 1.05) if letter == "B" else tailed(0)


def test_one_answer_in_twenty_is_found_at_the_third_look_wherever_the_p95_happens_to_lie() -> None:
    for noise in (None, NoiseModel()):
        given = {} if noise is None else {"noise": noise}
        assert end(judge(trial(2, leaping), **given)) == GOES_ON
        judgement = judge(trial(3, leaping), **given)
        assert end(judgement) == REGRESSED
        assert "5% of the answers took more than 2 times the median, 0% before" in str(judgement.reasons[0])
        assert row(judgement, "ttft_user_p95 at normal").state == "breach"


def test_the_p95_alone_does_not_tell() -> None:
    def uncounted(number: int, letter: Letter) -> LevelMeasurement:
        return level(latency=leaping(number, letter).latency)

    assert end(judge(trial(2, uncounted))) == GOES_ON


def test_one_pair_tells_no_tail_either() -> None:
    assert end(judge(trial(1, leaping))) == GOES_ON


def test_fewer_than_two_points_more_are_no_harm() -> None:
    assert end(judge(steady(2, tailed(0), tailed(5)))) == KEPT_NEUTRAL
    assert end(judge(steady(4, tailed(0), tailed(5)))) == KEPT_NEUTRAL


def test_a_tail_that_was_there_before_is_not_blamed_on_the_change() -> None:
    assert end(judge(steady(2, tailed(15), tailed(16)))) == KEPT_NEUTRAL
    assert end(judge(steady(2, tailed(40), tailed(15)))) == KEPT_NEUTRAL


def test_a_burst_in_each_phase_of_b_so_far_is_neither_harm_nor_clear_before_the_third_pair() -> None:
    judgement = judge(steady(2, tailed(0), tailed(12)))
    assert end(judgement) == GOES_ON
    assert "that counts after 3 pairs" in row(judgement, "ttft_user_p95 at normal").note


def test_bursts_that_not_every_phase_of_b_has_are_no_harm() -> None:
    def bursts(number: int, letter: Letter) -> LevelMeasurement:
        return tailed(30 if letter == "B" and number != 6 else 0)

    assert row(judge(trial(4, bursts)), "ttft_user_p95 at normal").state == "clear"


def test_a_burst_in_one_phase_is_not_taken_for_the_changes_doing() -> None:
    judgement = judge(trial(2, lambda number, _: tailed(30 if number == 2 else 0)))
    assert end(judgement) == KEPT_NEUTRAL


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], 0),
        ([1.0], 0),
        ([1.0, 1.0, 2.0], 0),
        ([1.0, 1.0, 2.01], 1),
        ([0.0, 0.0, 0.1], 1),
        ([3.0, 1.0, 1.0, 9.0, 1.0], 2),
    ],
)
def test_far_is_what_lies_beyond_twice_the_median(values: Sequence[float], expected: int) -> None:
    assert far(numpy.array(values)) == expected
