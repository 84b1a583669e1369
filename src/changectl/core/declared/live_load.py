"""May load be sent to an instance beside its users? No more than a tenth of what they send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from changectl.core.units import LevelLoad, format_duration

SHARE = 0.1  # of live traffic that may be added
IDLE_AFTER = 60.0  # seconds without any request after which an instance serves nobody


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """What users sent to an instance while nothing was done to it, and what a trial would add.

    Attributes:
        spared: why nobody has to be spared, as a sentence; "": users may be served beside the load.
        levels: what would be added.
        seconds: for how long the engine's page was watched.
        requests: that ended meanwhile, by the engine's own count; None: it does not count them.
        tokens: that it generated meanwhile; None: it does not count them.
        under_way: requests under way, the mean of all looks; None: it does not tell.
    """

    spared: str = ""
    levels: Mapping[str, LevelLoad] = field(default_factory=dict)
    seconds: float = 0.0
    requests: float | None = None
    tokens: float | None = None
    under_way: float | None = None

    @property
    def idle(self) -> bool:
        """Whether it was seen to serve nobody, for long enough."""
        # No request may have ended, and yet one be under way that takes longer than the look.
        counted = (self.requests, self.tokens) != (None, None)
        return self.seconds >= IDLE_AFTER and counted and not (self.requests or self.tokens or self.under_way)

    @property
    def rate(self) -> float | None:
        """Requests a second that users send; None: not known."""
        return None if self.requests is None or not self.seconds else self.requests / self.seconds

    def allowed(self, load: LevelLoad) -> float | None:
        """The most that a level of this kind may add: streams, or requests a second; None: not known."""
        live = self.rate if load.open else self.under_way
        return None if live is None else SHARE * live

    @property
    def told(self) -> str:
        """What users sent, in words."""
        parts = [] if self.rate is None else [f"{self.rate:.2g} requests/s"]
        parts += [] if self.under_way is None else [f"{self.under_way:.2g} under way at a time"]
        return f"live in {format_duration(round(self.seconds))}: {', '.join(parts) or 'not told by the engine'}"


def added(load: LevelLoad) -> float:
    """What a level adds: streams, or requests a second."""
    return float((load.rate if load.open else load.streams) or 0)
