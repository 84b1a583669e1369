from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.unit.core.judging.test_baseline import MS, level

from changectl.core.judging.baseline import unusable
from changectl.core.judging.exactness import LIMITS, shortcomings
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.self_test import FIGURES, NOT_SAID, SelfTest, said
from changectl.core.replaying.basis import Basis

EXACT = dict.fromkeys(FIGURES, 0.0001)


def measured(test: SelfTest | None, *levels: LevelMeasurement) -> Measurement:
    return Measurement(levels or (level(),), self_test=test)


def off(**figures: float) -> SelfTest:
    return SelfTest(({**EXACT, **figures},))


def with_medians(ttft: float, tpot: float) -> LevelMeasurement:
    own = level()
    medians = {"ttft_user": {"p50": ttft}, "tpot": {"p50": tpot}}
    return replace(own, latency={name: medians.get(name, kept) for name, kept in own.latency.items()})


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_has_a_limit_and_is_named_beyond_it(figure: str) -> None:
    quick = with_medians(ttft=1 * MS, tpot=0.1 * MS)
    limit = LIMITS[figure]
    assert shortcomings(measured(off(**{figure: limit}), quick)) == []
    ((code, text),) = shortcomings(measured(off(**{figure: 1.5 * limit}), quick))
    assert code == "generator_inexact"
    assert figure.rpartition("_")[2].upper() in text
    assert "limit" in text


def test_a_service_whose_times_are_long_can_be_measured_by_a_clock_that_is_less_exact() -> None:
    slow, quick = with_medians(ttft=400 * MS, tpot=40 * MS), with_medians(ttft=4 * MS, tpot=1 * MS)
    test = off(ttft_p99=30 * MS, tpot_p99=7 * MS)
    assert shortcomings(measured(test, slow)) == []
    assert shortcomings(measured(test, slow, quick))


def test_one_exact_try_of_several_shows_that_it_can() -> None:
    late = {**EXACT, "ttft_p99": 50 * MS}
    assert shortcomings(measured(SelfTest((late, late, EXACT)))) == []
    assert [code for code, _ in shortcomings(measured(SelfTest((late, late, late))))] == ["generator_inexact"]


def test_an_older_record_has_none_and_is_judged_as_ever() -> None:
    assert shortcomings(measured(None)) == []


@pytest.mark.parametrize(
    ("summary", "problem"),
    [
        ({}, NOT_SAID),
        ({"self_test": None}, NOT_SAID),
        ({"self_test": {"tries": []}}, NOT_SAID),
        ({"self_test": {"tries": [{**EXACT, "ttft_p99": float("nan")}]}}, NOT_SAID),
        ({"self_test": {"tries": [{**EXACT, "lag_p99": True}]}}, NOT_SAID),
        ({"self_test": {"tries": [{"ttft_p50": 0.0}]}}, NOT_SAID),
        ({"self_test": {"tries": [{"problem": "no loopback"}]}}, "no loopback"),
    ],
)
def test_no_figures_are_never_taken_for_exact(summary: dict[str, Any], problem: str) -> None:
    assert said(summary) == SelfTest((), problem)
    (reason,) = unusable(measured(said(summary)))
    assert reason.code == "baseline_generator_untested"
    assert problem in reason.text


def test_a_try_that_failed_does_not_hide_one_that_came_to_an_end() -> None:
    test = said({"self_test": {"tries": [{"problem": "reset"}, EXACT]}})
    assert test == SelfTest((EXACT,), "reset")
    assert shortcomings(measured(test)) == []


@pytest.mark.parametrize("test", [None, off(ttft_p50=0.1 + 0.2), SelfTest((), "why")])
def test_what_is_recorded_is_read_back_to_the_bit_and_older_records_stay_as_they_are(test: SelfTest | None) -> None:
    again, basis = measured(test), Basis({}, self_test=test)
    assert Measurement.from_json(again.to_json()) == again
    assert Basis.from_json(basis.to_json()) == Basis({}, expected=frozenset(), self_test=test)
    assert ("self_test" in again.to_json(), "self_test" in basis.to_json()) == (test is not None, test is not None)
    assert basis.measurement([]).self_test == test
