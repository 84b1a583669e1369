from __future__ import annotations

import contextlib
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core import units
from changectl.core.units import LevelLoad, Limit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("800ms", 0.8), ("2s", 2), ("45m", 2700), ("1h30m", 5400), (" 2.5 s ", 2.5), ("10us", 1e-5), ("1m 30s", 90)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "800", "0s", "-2s", "2 days", "ms", "1e3s", "nan s", "inf", "2s!", "٣s", "9999999h"]
)
def test_what_is_no_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="like 800ms"):
        units.parse_duration(text)


@given(st.floats(1e-6, 1e6))
def test_a_printed_duration_reads_as_nearly_the_same(seconds: float) -> None:
    assert units.parse_duration(units.format_duration(seconds)) == pytest.approx(seconds, rel=1e-3)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.8, "800ms"), (0.0123, "12.3ms"), (2, "2s"), (90, "90s"), (2700, "45m"), (0, "0s"), (math.inf, "unbounded")],
)
def test_durations_are_printed_short(seconds: float, text: str) -> None:
    assert units.format_duration(seconds) == text


@pytest.mark.parametrize(
    ("difference", "text"), [(0.05, "+5 points"), (-0.014, "-1.4 points"), (0.01, "+1 point"), (0, "+0 points")]
)
def test_the_difference_of_two_shares_is_told_in_points(difference: float, text: str) -> None:
    assert units.format_points(difference) == text


def test_a_share_moves_by_points_and_everything_else_relative_to_before() -> None:
    assert units.format_moved(0.01, 0.03, 2.0, units.SHARE) == "+2 points"
    assert units.format_moved(0.0, 0.0, None, units.SHARE) == ""
    assert units.format_moved(None, 0.1, None, units.SHARE) == ""
    assert units.format_moved(0.1, 0.15, 0.5, units.SECONDS) == "+50%"


def test_a_latency_below_every_clock_reads_as_none() -> None:
    assert units.format_value(0.0, units.SECONDS) == "0ms"
    assert units.format_value(4e-9, units.SECONDS) == "0ms"
    assert units.format_value(4e-6, units.SECONDS) == "4us"


def test_shares_and_changes_are_read_and_printed() -> None:
    assert units.parse_share("1%") == 0.01
    assert units.format_share(1 / 60) == "1.67%"
    assert units.parse_change("+10%") == pytest.approx(0.1)
    assert units.parse_change("-5.5 %") == pytest.approx(-0.055)
    assert units.format_change(-0.5) == "-50%"
    assert units.format_change(math.inf) == "unbounded"


@pytest.mark.parametrize(
    ("text", "word"),
    [("10%", "sign"), ("+10", "percentage"), ("+0%", "neutral"), ("-100%", "nothing"), ("a lot", "like")],
)
def test_what_is_no_change_is_refused(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        units.parse_change(text)


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("<= 800ms", Limit("<=", 0.8, "s")),
        (">=3 rps", Limit(">=", 3, "req/s")),
        ("<= 1%", Limit("<=", 0.01, "share")),
        (">= 200 tok/s", Limit(">=", 200, "tok/s")),
        (">= 50000 tokens", Limit(">=", 50000, "tokens")),
    ],
)
def test_limits_are_read_and_print_as_written(text: str, limit: Limit) -> None:
    assert units.parse_limit(text) == limit
    assert units.parse_limit(str(limit)) == limit


@pytest.mark.parametrize("text", ["800ms", "< 800ms", "<= 800", "<= fast", "<=", "== 1%", "<= 101%"])
def test_what_is_no_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|most"):
        units.parse_limit(text)


def test_infinity_breaks_an_upper_limit_and_keeps_a_lower_one() -> None:
    assert not Limit("<=", 1.0, "s").holds(math.inf)
    assert Limit(">=", 1.0, "s").holds(math.inf)


def test_levels_are_streams_or_a_rate() -> None:
    assert units.parse_level("1 stream") == LevelLoad(streams=1)
    assert units.parse_level("8 streams") == LevelLoad(streams=8)
    assert units.parse_level("6 rps") == LevelLoad(rate=6)
    assert units.parse_level("6 req/s") == units.parse_level("6.0rps") == LevelLoad(rate=6)
    assert units.parse_level("6 rps").open
    assert not units.parse_level("8 streams").open
    assert [str(units.parse_level(text)) for text in ("1 stream", "8 streams", "6.5 rps")] == [
        "1 stream",
        "8 streams",
        "6.5 rps",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "8",
        "0 streams",
        "0 rps",
        "many streams",
        "-1 streams",
        "1.5 streams",
        "-6 rps",
        "1e3 rps",
        "6 rpm",
        "10001 streams",
        "10000.1 rps",
        "9" * 400 + " rps",
        "9" * 400 + " streams",
    ],
)
def test_what_is_no_level_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="stream"):
        units.parse_level(text)


def test_missing_is_printed_as_such() -> None:
    assert units.format_value(None, "s") == "no data"
    assert units.format_value(math.inf, "s") == "unbounded"
    assert units.format_value(24.3, "req/s") == "24.3 rps"
    assert units.format_value(123456, "tokens") == "123456 tokens"


@given(st.text())
def test_no_text_makes_a_parser_raise_anything_but_value_error(text: str) -> None:
    for parse in (units.parse_duration, units.parse_share, units.parse_change, units.parse_limit, units.parse_level):
        with contextlib.suppress(ValueError):
            parse(text)
