"""How many requests were under way at a time: what a level really was, whatever was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from changectl.core.measuring.durations import Durations, Figures


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests under way: over time, and at most; None: cannot be said."""

    mean: float | None
    most: int | None


def in_flight(requests: Durations, *, closed: bool) -> InFlight:
    """Count what one level had under way, each request from the moment it was taken up until its end.

    The mean is the integral over time, divided by the time: for an open level from the first request that was due to
    the last one; for a closed one from the moment its last stream began to the one when its first stream had ended, so
    that ramp and end, in which fewer streams run, are left out.
    """
    started, ended = requests.field("t_start"), requests.field("t_end")
    if not len(started) or not (started <= ended).all():  # also where a time is not known
        return InFlight(None, None)
    planned = requests.field("t_planned")
    begin, end = _all_streams(requests.field("stream"), started, ended) if closed else (planned.min(), planned.max())
    most = _most(started, ended)
    if end <= begin:
        return InFlight(None, most)
    under_way = (ended.clip(begin, end) - started.clip(begin, end)).sum()
    return InFlight(float(under_way / (end - begin)), most)


def _all_streams(streams: Figures, started: Figures, ended: Figures) -> tuple[float, float]:
    """From the last stream's first request to the first stream's last answer."""
    each = [streams == stream for stream in set(streams.tolist())]
    return max(started[own].min() for own in each), min(ended[own].max() for own in each)


def _most(started: Figures, ended: Figures) -> int:
    """One that ends at the moment at which another begins makes room for it."""
    import numpy as np

    starts = np.sort(started)
    over = np.searchsorted(np.sort(ended), starts, side="right")
    return int((np.arange(1, len(starts) + 1) - over).max())
