"""How long a load level lasts and how many requests it gets: what of that is known before anything is sent."""

from __future__ import annotations

from dataclasses import dataclass

from changectl.core.units import LevelLoad, format_duration

STAGGER = 0.02  # seconds between the first requests of a closed level's streams: its ramp


@dataclass(frozen=True, slots=True)
class LevelSize:
    """One level in one phase: for a time, or for a number of requests."""

    load: LevelLoad
    seconds: float | None = None
    requests: int | None = None
    may_end: bool = False  # before its time, as soon as its figures are precise

    @property
    def count(self) -> int | None:
        """How many requests; None: a closed level that lasts for a time gets as many as the service answers."""
        if self.requests is not None or self.seconds is None or self.load.rate is None:
            return self.requests
        return max(1, round(self.load.rate * self.seconds))

    @property
    def lasts(self) -> float | None:
        """Seconds in which requests are sent; None: a closed level of so many requests ends when they are answered."""
        if self.seconds is not None and self.requests is None:
            return self.seconds
        return None if self.load.rate is None or self.requests is None else self.requests / self.load.rate

    @property
    def rate(self) -> float | None:
        """Requests per second of an open level as they are planned: whole requests, so nearly what was declared."""
        if self.load.rate is None or not self.count or not self.lasts:
            return None
        return self.count / self.lasts

    @property
    def ramp(self) -> float:
        """Seconds until the last stream of a closed level has begun."""
        return STAGGER * ((self.load.streams or 1) - 1)

    def __str__(self) -> str:
        if self.load.rate is None or self.lasts is None:
            return str(self.load)
        return f"{self.load}, open: {self.count} requests in {format_duration(self.lasts)}"
