"""The terms of a verdict, and what a measurement stands on, come back from the record exactly as they were."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.errors import InputError
from changectl.core.judging.judgement import Reason
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.metrics import Expectation, Guard, parse_metric
from changectl.core.replaying import policy
from changectl.core.replaying.basis import Basis
from changectl.core.replaying.terms import Terms
from changectl.core.trial.noise_model import NoiseModel, Spread
from changectl.core.units import SECONDS, LevelLoad, Limit

EXACT = st.floats(1e-12, 1e12)


def limit(value: float, metric: str = "ttft_user_p95 at peak", source: str = "slo") -> Guard:
    return Guard(parse_metric(metric), Limit("<=", value, SECONDS), source)  # type: ignore[arg-type]


@given(EXACT, EXACT, st.sets(st.text(max_size=8), max_size=4))
def test_terms_are_read_back_to_the_last_bit(value: float, change: float, declared: set[str]) -> None:
    terms = Terms(
        service_class="offline",
        slo=(limit(value),),
        accept=(limit(value / 3, "tpot_p50", "accept"),),
        expect=(Expectation(parse_metric("rps_ok at peak"), change),),
        declared=frozenset(declared),
        changes_answers=True,
        noise=NoiseModel({"rps_ok": Spread(value, 4.0)}),
        schedule=(1, 2, 4),
        stopped=Reason("time_used_up", "why"),
    )

    assert Terms.from_json(json.loads(json.dumps(terms.to_json(), allow_nan=False))) == terms


@given(EXACT, st.integers(1, 64))
def test_what_a_measurement_stands_on_is_read_back_to_the_last_bit(value: float, streams: int) -> None:
    sizes = {
        "low": LevelSize(LevelLoad(streams=streams), value, None, may_end=True),
        "peak": LevelSize(LevelLoad(rate=value), None, 7),
    }
    facts = {"load_time": value, "kv_capacity": None}
    basis = Basis(sizes, (limit(value),), facts, "why", frozenset({"p", "q"}), ended={"low": value / 3})
    read = Basis.from_json(json.loads(json.dumps(basis.to_json(), allow_nan=False)))

    assert read == basis
    assert list(read.sizes) == ["low", "peak"]


def test_what_an_earlier_program_recorded_lets_every_level_use_its_time() -> None:
    raw = Basis({"low": LevelSize(LevelLoad(streams=2), 20.0)}).to_json()
    earlier = {**raw, "levels": [{name: value for name, value in raw["levels"][0].items() if name != "may_end"}]}
    del earlier["ended"]

    assert Basis.from_json(earlier) == Basis.from_json(raw)


def test_a_fact_that_is_no_figure_is_not_known() -> None:
    assert Basis({}, facts={"load_time": math.inf, "kv_capacity": math.nan}).to_json()["facts"] == {
        "load_time": None,
        "kv_capacity": None,
    }


@pytest.mark.parametrize("raw", [{}, {"levels": 3}, {"class": "interactive"}, {"levels": [{"name": "low"}]}])
def test_another_shape_is_an_error_and_no_guess(raw: dict[str, object]) -> None:
    for read in (Terms.from_json, Basis.from_json):
        with pytest.raises(ValueError):
            read(raw)  # type: ignore[operator]


def test_a_policy_takes_the_place_of_what_it_names_alone() -> None:
    terms = Terms(service_class="interactive", slo=(limit(1.0),), accept=(limit(2.0, "tpot_p95", "accept"),))
    other = policy.load(
        "version: 1\nslo: {tpot_p95: <= 9ms, ttft_user_p95 at peak: <= 3s}\n", "p.yml", levels=("peak",)
    )
    found = terms.under(other)

    assert [str(guard) for guard in found.slo] == ["slo ttft_user_p95 at peak <= 3s"]  # the plan's own limit holds
    assert found.accept == terms.accept
    assert terms.under(policy.load("version: 1\nclass: offline\n", "p.yml", levels=())).slo == terms.slo


def test_a_policy_without_limits_is_refused() -> None:
    with pytest.raises(InputError, match="names no limit"):
        policy.load("version: 1\n", "p.yml", levels=())
