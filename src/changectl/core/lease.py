"""How long a run's right to act on a host lasts without a sign of life, and how often it gives one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DEFAULT = 300.0  # seconds; a network that hiccups for less than this costs nothing
BEATS = 4  # signs of life in one lease: three may get lost
LONGEST_BEAT = 20.0  # seconds
SHORTEST_BEAT = 0.2
TO_STOP = 20.0  # seconds in which a host that restores has stopped what was under trial


@dataclass(frozen=True, slots=True)
class Lease:
    """The right of one run to act on one host.

    Attributes:
        run: the run's folder on the host; several instances there share the lease.
        generation: grows when somebody takes the run over; a host refuses an older one.
        nonce: of this lease alone, so that no later one can be mistaken for it.
        seconds: how long it lasts after each sign of life.
    """

    run: str
    generation: int
    nonce: str
    seconds: float

    @property
    def beat(self) -> float:
        """Seconds between two signs of life."""
        return _beat(self.seconds)

    def as_args(self) -> dict[str, Any]:
        """As host calls name it."""
        return {"run": self.run, "generation": self.generation, "nonce": self.nonce}


def _beat(seconds: float) -> float:
    return max(SHORTEST_BEAT, min(LONGEST_BEAT, seconds / BEATS))


def run_folder(run: str, step: int, instance: int = 0) -> str:
    """The name of a run's folder on a host: every step has a snapshot of its own, and so has every instance there.

    Args:
        run: the run's id.
        step: its step.
        instance: which one it is of several on that host, from 1; 0: the only one, or what all of them share.
    """
    return f"{run}.{step}/{instance}" if instance else f"{run}.{step}"


def whole(folder: str) -> str:
    """What a host is held for: the same for all instances of a step there."""
    return folder.partition("/")[0]


def outliving(seconds: float) -> float:
    """Seconds of a lease whose host acts after the one whose lease lasts `seconds`, whenever the run falls silent.

    Each gives its signs of life by itself: the last one here may be a beat older than the last one there.
    """
    return seconds + 2 * _beat(seconds) + TO_STOP


def length(declared: float | None, last_load: float | None, stop_timeout: float) -> float:
    """Seconds of a lease.

    What the service or project file says counts. Otherwise five minutes, and more where one restart alone takes longer:
    a host that restores in the middle of a slow start would only prolong the outage.

    Args:
        declared: `lease` of the service or project file.
        last_load: how long the last good start took; None: never measured.
        stop_timeout: how long a stop may take.
    """
    if declared is not None:
        return declared
    return max(DEFAULT, 2 * ((last_load or 0.0) + stop_timeout))


def standing_of(answer: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """One of the records in a host's `standing` answer (lease, armed, disarmed, fired); None: there is none."""
    found = answer.get(name)
    return found if isinstance(found, Mapping) else None
