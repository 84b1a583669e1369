"""How many requests were under way at a time: what a level really was, whatever was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.records import Record


@dataclass(frozen=True, slots=True)
class InFlight:
    """Requests under way: over time, and at most; None: cannot be said."""

    mean: float | None
    most: int | None


def in_flight(records: Sequence[Record], *, closed: bool) -> InFlight:
    """Count what one level had under way, each request from the moment it was taken up until its end.

    The mean is the integral over time, divided by the time: for an open level from the first request that was due to
    the last one; for a closed one from the moment its last stream began to the one when its first stream had ended, so
    that ramp and end, in which fewer streams run, are left out.
    """
    spans = [
        (record.t_start, record.t_end)
        for record in records
        if record.t_start is not None and record.t_end is not None and record.t_start <= record.t_end
    ]
    if not spans or len(spans) < len(records):
        return InFlight(None, None)
    begin, end = _all_streams(records) if closed else _sending(records)
    if end <= begin:
        return InFlight(None, _most(spans))
    under_way = sum(max(0, min(last, end) - max(first, begin)) for first, last in spans)
    return InFlight(under_way / (end - begin), _most(spans))


def _sending(records: Sequence[Record]) -> tuple[int, int]:
    planned = [record.t_planned for record in records]
    return min(planned), max(planned)


def _all_streams(records: Sequence[Record]) -> tuple[int, int]:
    """From the last stream's first request to the first stream's last answer."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for record in records:
        start, end = record.t_start or 0, record.t_end or 0
        first[record.stream] = min(start, first.get(record.stream, start))
        last[record.stream] = max(end, last.get(record.stream, end))
    return max(first.values()), min(last.values())


def _most(spans: Sequence[tuple[int, int]]) -> int:
    # One that ends at the moment at which another begins makes room for it.
    changes = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
