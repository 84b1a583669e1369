"""How people write quantities (`800ms`, `<= 1%`, `+10%`, `8 streams`) and how they are shown again.

Inside, one unit per quantity: seconds, shares (0.01 is 1 %), requests per second, tokens per second. Every parser
raises ValueError with a sentence that says what to write instead.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

SECONDS = "s"
SHARE = "share"
RATE = "req/s"
OUTPUT_RATE = "tok/s"
TOKENS = "tokens"
LONGEST = 366 * 86400.0  # seconds of a duration; what is longer was not meant
MOST_STREAMS = 10_000
FASTEST = 10_000.0  # requests per second; beyond either of the two no load generator of one process can send
SHORTEST = 5e-7  # seconds; what is measured below it came in the same moment

_DURATION_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|ms|s|m|h)", re.ASCII)
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?\s*(?:ns|us|ms|s|m|h)\s*)+", re.ASCII)
_NUMBER = re.compile(r"\d+(?:\.\d+)?", re.ASCII)
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)
_CHANGE = re.compile(r"([+-])\s*(\d+(?:\.\d+)?)\s*%", re.ASCII)
_LIMIT = re.compile(r"(<=|>=)\s*(\S.*)")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)\s*(rps|req/s|tok/s|tokens?)", re.ASCII)
_STREAMS = re.compile(r"(\d+)\s*streams?", re.ASCII)
_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*(?:rps|req/s)", re.ASCII)

_QUANTITY_UNITS = {"rps": RATE, "req/s": RATE, "tok/s": OUTPUT_RATE, "token": TOKENS, "tokens": TOKENS}
_LIMIT_HINT = 'write a comparison and a value with its unit, like "<= 800ms", ">= 3 rps" or "<= 1%"'


def parse_duration(text: str) -> float:
    """Seconds of `800ms`, `2s`, `45m`, `1h30m`.

    Raises:
        ValueError: no unit, an unknown unit, or not a positive number.
    """
    stripped = text.strip()
    if not _DURATION.fullmatch(stripped):
        raise ValueError(f'"{text}" is not a duration; write a number with ms, s, m or h, like 800ms or 45m')
    seconds = sum(float(number) * _DURATION_UNITS[unit] for number, unit in _DURATION_PART.findall(stripped))
    if not 0 < seconds < math.inf:
        raise ValueError(f'"{text}" is not a duration that can pass; write one above zero, like 800ms or 45m')
    if seconds > LONGEST:
        raise ValueError(f'"{text}" is longer than a year; write one that passes, like 800ms or 45m')
    return seconds


def format_duration(seconds: float, digits: int = 4) -> str:
    """A duration as `parse_duration` reads it: `800ms`, `2.5s`, `45m`; infinity reads `unbounded`."""
    if not math.isfinite(seconds):
        return "unbounded"
    size = abs(seconds)
    if size == 0:
        return "0s"
    for unit, factor, least in (("h", 3600.0, 7200.0), ("m", 60.0, 120.0), ("s", 1.0, 1.0), ("ms", 1e-3, 1e-3)):
        if size >= least:
            return f"{_plain(seconds / factor, digits)}{unit}"
    return f"{_plain(seconds / 1e-6, digits)}us"


def parse_share(text: str) -> float:
    """The share of `1%` (0.01).

    Raises:
        ValueError: no percent sign, or above 100 %.
    """
    match = _PERCENT.fullmatch(text.strip())
    if not match:
        raise ValueError(f'"{text}" is not a share; write it in percent, like 1%')
    share = float(match.group(1)) / 100
    if share > 1:
        raise ValueError(f'"{text}" is more than everything; a share is at most 100%')
    return share


def format_share(share: float, digits: int = 3) -> str:
    """A share in percent: `1.67%`."""
    return f"{_plain(share * 100, digits)}%"


def parse_change(text: str) -> float:
    """The relative change of `+10%` (0.1) or `-5%` (-0.05).

    Raises:
        ValueError: no sign, no percent sign, zero, or a loss of everything.
    """
    match = _CHANGE.fullmatch(text.strip())
    if not match:
        raise ValueError(f'"{text}" is not a change; write a sign and a percentage, like +10% or -5%')
    change = float(match.group(1) + match.group(2)) / 100
    if change == 0:
        raise ValueError(f'"{text}" expects no change; write "expect: neutral" for that')
    if change <= -1:
        raise ValueError(f'"{text}" would leave nothing; write less than 100% for a decrease')
    return change


def format_change(change: float, digits: int = 3) -> str:
    """A relative change with its sign: `+10%`."""
    if not math.isfinite(change):
        return "unbounded"
    return f"{'-' if change < 0 else '+'}{_plain(abs(change) * 100, digits)}%"


def format_points(difference: float) -> str:
    """The difference of two shares, which is no percentage of either: `+5 points`."""
    text = _plain(abs(difference) * 100, 3)
    return f"{'-' if difference < 0 else '+'}{text} {'point' if text == '1' else 'points'}"


def format_moved(before: float | None, after: float | None, change: float | None, unit: str) -> str:
    """How far a figure moved: shares in points, everything else relative to before; empty: that cannot be said."""
    if unit == SHARE:
        known = before is not None and after is not None and before != after
        return format_points(after - before) if known and after is not None and before is not None else ""
    return "" if change is None else format_change(change)


@dataclass(frozen=True, slots=True)
class Limit:
    """An absolute limit: `<= 800ms` is Limit("<=", 0.8, "s")."""

    operator: Literal["<=", ">="]
    value: float
    unit: str

    def holds(self, value: float) -> bool:
        """Whether a measured value (in the limit's unit; infinity is a value) is within the limit."""
        return value <= self.value if self.operator == "<=" else value >= self.value

    def __str__(self) -> str:
        return f"{self.operator} {format_value(self.value, self.unit)}"


def parse_limit(text: str) -> Limit:
    """The limit of `<= 800ms`, `>= 3 rps`, `<= 1%`, `>= 200 tok/s`, `>= 50000 tokens`.

    Raises:
        ValueError: no comparison, an unknown unit, or a bare number.
    """
    match = _LIMIT.fullmatch(text.strip())
    if not match:
        raise ValueError(f'"{text}" is not a limit; {_LIMIT_HINT}')
    operator: Literal["<=", ">="] = "<=" if match.group(1) == "<=" else ">="
    value, unit = _parse_quantity(match.group(2), text)
    return Limit(operator, value, unit)


def _parse_quantity(quantity: str, whole: str) -> tuple[float, str]:
    if _PERCENT.fullmatch(quantity):
        return parse_share(quantity), SHARE
    if match := _QUANTITY.fullmatch(quantity):
        return float(match.group(1)), _QUANTITY_UNITS[match.group(2)]
    if _DURATION.fullmatch(quantity):
        return parse_duration(quantity), SECONDS
    if _NUMBER.fullmatch(quantity):
        raise ValueError(f'"{whole}" has no unit; {_LIMIT_HINT}')
    raise ValueError(f'"{whole}" has a value that is not understood; {_LIMIT_HINT}')


def format_value(value: float | None, unit: str) -> str:
    """A measured value for people; None reads `no data`, infinity `unbounded`."""
    if value is None:
        return "no data"
    if not math.isfinite(value):
        return "unbounded"
    if unit == SECONDS:
        return format_duration(value) if abs(value) >= SHORTEST else "0ms"
    if unit == SHARE:
        return format_share(value)
    names = {RATE: "rps", OUTPUT_RATE: "tok/s", TOKENS: "tokens"}
    return f"{_plain(value, 12 if unit == TOKENS else 4)} {names[unit]}" if unit in names else _plain(value, 4)


@dataclass(frozen=True, slots=True)
class LevelLoad:
    """How much load a level is: `streams` in a closed level, `rate` (requests per second) in an open one.

    In a closed level each stream asks again when it was answered, so a slow service is asked less. In an open one
    requests come at their rate whatever the answers do, as they do from users, so waiting shows.
    """

    streams: int | None = None
    rate: float | None = None

    @property
    def open(self) -> bool:
        """Whether requests are planned by a rate, whatever the answers do."""
        return self.rate is not None

    def __str__(self) -> str:
        if self.rate is not None:
            return f"{_plain(self.rate, 6)} rps"
        return "1 stream" if self.streams == 1 else f"{self.streams} streams"


def parse_level(text: str) -> LevelLoad:
    """The load of `1 stream`, `8 streams` (closed) or `6 rps` (open; also `6 req/s`).

    Raises:
        ValueError: neither of them, zero, or more than can be sent.
    """
    stripped = text.strip()
    if match := _STREAMS.fullmatch(stripped):
        load = LevelLoad(streams=int(match.group(1)))
    elif match := _RATE.fullmatch(stripped):
        load = LevelLoad(rate=float(match.group(1)))
    else:
        raise ValueError(
            f'"{text}" is not a load level; write a number of streams, like "8 streams", or a rate, "6 rps"'
        )
    if not (load.streams or load.rate):
        raise ValueError(f'"{text}" is no load at all; write at least "1 stream", or a rate above zero')
    if (load.streams or 0) > MOST_STREAMS or (load.rate or 0.0) > FASTEST:
        raise ValueError(
            f'"{text}" is more than one load generator can send; write at most "{MOST_STREAMS} streams", '
            f'or "{FASTEST:g} rps"'
        )
    return load


def _plain(value: float, digits: int) -> str:
    """A number with at most `digits` significant digits, never with an exponent or trailing zeros."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
