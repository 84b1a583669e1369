"""How long a level lasts and how many requests it gets, as far as that is known beforehand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.measuring.level_size import LevelSize
from changectl.core.units import LevelLoad, parse_level


@pytest.mark.parametrize(
    ("load", "seconds", "requests", "count", "lasts"),
    [
        ("6 rps", 20.0, None, 120, 20.0),
        ("6 rps", None, 60, 60, 10.0),
        ("0.5 req/s", 60.0, None, 30, 60.0),
        ("6.3 rps", 20.0, None, 126, 20.0),
        ("8 streams", 20.0, None, None, 20.0),
        ("8 streams", None, 60, 60, None),
    ],
)
def test_an_open_level_is_known_in_both_and_a_closed_one_in_what_was_asked_for(
    load: str, seconds: float | None, requests: int | None, count: int | None, lasts: float | None
) -> None:
    size = LevelSize(parse_level(load), seconds, requests)

    assert (size.count, size.lasts) == (count, lasts)


@given(st.floats(1.0, 500), st.floats(20, 600))
def test_the_planned_rate_is_the_declared_one_but_for_the_last_request(rate: float, seconds: float) -> None:
    size = LevelSize(LevelLoad(rate=rate), seconds)

    assert size.rate == pytest.approx(rate, abs=0.5 / seconds + 1e-9)


@given(st.floats(0.1, 500), st.integers(20, 10_000))
def test_a_number_of_requests_keeps_the_rate_exactly(rate: float, requests: int) -> None:
    assert LevelSize(LevelLoad(rate=rate), None, requests).rate == pytest.approx(rate)


def test_an_open_level_says_what_it_is() -> None:
    assert str(LevelSize(LevelLoad(rate=6), 20.0)) == "6 rps, open: 120 requests in 20s"
    assert str(LevelSize(LevelLoad(streams=8), 20.0)) == "8 streams"
    assert LevelSize(LevelLoad(streams=8), 20.0).rate is None
