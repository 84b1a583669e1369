"""When a level may end before its time: which figures have to be how precise, and after how many answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.metrics import Expectation, Guard, parse_expectation, parse_guard
from changectl.core.trial.noise_model import NOTHING_KNOWN, PRIOR, NoiseModel, Spread
from changectl.core.trial.precision import EACH_STREAM, REQUESTS, Enough, enough
from changectl.core.units import LevelLoad

CLOSED = LevelSize(LevelLoad(streams=2), 20.0)
TWO: Mapping[str, LevelSize] = {"low": CLOSED, "peak": LevelSize(LevelLoad(streams=16), 20.0)}


def found(
    sizes: Mapping[str, LevelSize] = TWO,
    guards: Sequence[Guard] = (),
    expect: Sequence[Expectation] = (),
    noise: NoiseModel = NOTHING_KNOWN,
    service_class: str = "interactive",
) -> dict[str, Enough]:
    return enough(sizes, service_class=service_class, guards=guards, expect=expect, noise=noise)


def test_the_default_guards_of_the_class_are_judged_by_median_and_tail() -> None:
    assert set(found()["low"].errors) == {
        *(f"{name}_{statistic}" for name in ("ttft_user", "tpot", "e2e_user") for statistic in ("p50", "p95")),
        "rps_ok", "out_tok_s",
    }  # fmt: skip
    assert "tpot_p50" not in found(service_class="offline")["low"].errors


def test_a_limit_takes_the_place_of_the_guard_and_a_gain_comes_on_top() -> None:
    own = found(guards=[parse_guard("tpot_p99 at peak", "<= 50ms")], expect=[parse_expectation("ttft_sent", "-10%")])
    assert {name for name in own["peak"].errors if name.startswith("tpot")} == {"tpot_p99"}
    assert {name for name in own["low"].errors if name.startswith("tpot")} == {"tpot_p50", "tpot_p95"}
    assert "ttft_sent_p50" in own["low"].errors
    assert own["peak"].requests == 16 * EACH_STREAM


def test_each_error_is_half_of_what_the_figure_differs_by_from_phase_to_phase() -> None:
    noise = NoiseModel({"tpot_p50 at peak": Spread(0.04**2, 30.0)})
    assert found(noise=noise)["peak"].errors["tpot_p50"] == pytest.approx(0.02)
    assert found(noise=noise)["low"].errors["tpot_p50"] == pytest.approx(PRIOR.deviation / 2)


def test_so_many_answers_come_together_that_failures_can_be_judged_and_no_stream_has_few() -> None:
    assert {name: one.requests for name, one in found().items()} == {"low": REQUESTS // 2, "peak": 16 * EACH_STREAM}
    assert found({"low": CLOSED})["low"].requests == REQUESTS


@pytest.mark.parametrize(
    ("name", "limit", "requests"),
    [("failures", "<= 1%", 300), ("failures", "<= 0.1%", 1500), ("failures at low", "<= 1%", 600)],
)
def test_a_limit_on_failures_takes_as_many_answers_as_it_is_tight(name: str, limit: str, requests: int) -> None:
    assert found(guards=[parse_guard(name, limit)])["low"].requests == requests


def test_a_level_uses_its_time_where_a_judged_figure_takes_every_request() -> None:
    assert found(guards=[parse_guard("failures", "<= 0%")]) == {}
    assert set(found(guards=[parse_guard("goodput at low", ">= 95%")])) == {"peak"}
    assert found(expect=[parse_expectation("failures", "-50%")]) == {}


def test_open_levels_and_levels_of_so_many_requests_are_as_long_as_they_are() -> None:
    sizes = {"open": LevelSize(LevelLoad(rate=6.0), 20.0), "counted": LevelSize(LevelLoad(streams=2), requests=60)}
    assert found(sizes) == {}


def test_figures_of_the_whole_phase_have_no_part_in_it() -> None:
    own = found(guards=[parse_guard("load_time", "<= 60s"), parse_guard("wrong_answers", "<= 5%")])
    assert own == found()
