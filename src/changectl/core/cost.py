"""What a change costs in time, told from what the record has of earlier ones on the same service."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Self

from changectl.core.units import format_duration

LATELY = 5  # how many earlier times count: a service gets slower or faster with its model
NEAR = 1.25  # times the shortest; up to there one figure tells as much as two


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds that something takes: the shortest and the longest of lately."""

    least: float
    most: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Self | None:
        """From what it took, latest last; None: it was never timed."""
        lately = seconds[-LATELY:]
        return cls(min(lately), max(lately)) if lately else None

    def __add__(self, other: Span) -> Span:
        return Span(self.least + other.least, self.most + other.most)

    def times(self, count: int) -> Span:
        """So many of it, one after the other."""
        return Span(count * self.least, count * self.most)

    def __str__(self) -> str:
        if self.most <= NEAR * self.least:
            return f"about {_rounded(self.most)}"
        return f"{_rounded(self.least)} to {_rounded(self.most)}"


def _rounded(seconds: float) -> str:
    """With two digits: more would promise what nobody knows."""
    if seconds <= 0:
        return "0s"
    return format_duration(round(seconds, 1 - floor(log10(seconds))))


@dataclass(frozen=True, slots=True)
class StartCost:
    """What one start of a service costs its users."""

    out: Span  # seconds without an answer for a start with the change
    back: Span  # the same for the way back


@dataclass(frozen=True, slots=True)
class Spent:
    """What the record has of a service, oldest first, in seconds."""

    starts: Sequence[float] = ()  # out of service, for one start
    ways_back: Sequence[float] = ()  # out of service, for one restore
    phases: Sequence[float] = ()  # for one measurement with the same load, warm-up and reading included

    @property
    def start_cost(self) -> StartCost | None:
        """What a start costs; None: none was recorded. A way back is a start, too, where none was needed so far."""
        out = Span.of(self.starts or self.ways_back)
        back = Span.of(self.ways_back or self.starts)
        return None if out is None or back is None else StartCost(out, back)
