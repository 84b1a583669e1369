"""What a load generator would have recorded of a service of known speed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MS = 10**6
CHUNKS = 10


@dataclass(frozen=True)
class Speed:
    """How a service answers, in milliseconds: until the first piece, and between two of them."""

    first: int
    each: int

    @property
    def whole(self) -> int:
        """Nanoseconds from being asked to the last piece."""
        return (self.first + (CHUNKS - 1) * self.each) * MS


def records(level: Mapping[str, Any], speed: Speed, requests: int, drag: float = 1.0) -> list[dict[str, Any]]:
    """The records of one level of a job.

    Args:
        level: as the job says it.
        speed: the service's.
        requests: how many a closed level gets.
        drag: how many times the time of its schedule the generator takes for an open level.
    """
    return _closed(level, speed, requests) if "streams" in level else _open(level, speed, drag)


def answered(
    record: dict[str, Any], workload: Sequence[Mapping[str, Any]], say: Callable[[str], str]
) -> dict[str, Any]:
    """The record of the workload's next request, with what was answered where it is a quality prompt."""
    item = workload[record["i"] % len(workload)]
    if not item.get("quality"):
        return record
    text = say(item["id"])
    return {**record, "prompt": item["id"], "text": text, "text_sha": hashlib.sha256(text.encode()).hexdigest()}


def _closed(level: Mapping[str, Any], speed: Speed, requests: int) -> list[dict[str, Any]]:
    """All streams at once, each asking again when its answer has ended: so late that the level lasts its time."""
    streams, lasts = level["streams"], level.get("seconds")
    turns = max(1, math.ceil(requests / streams))
    turn = speed.whole if lasts is None else max(speed.whole, math.ceil(lasts * 1e9 / turns))
    made = []
    for index in range(requests):
        begin = index // streams * turn
        made.append(_record(index, level["name"], index % streams, begin, begin, speed, begin + turn))
    return made


def _open(level: Mapping[str, Any], speed: Speed, drag: float) -> list[dict[str, Any]]:
    """Evenly spaced, and begun as the generator's drag allows."""
    made = []
    for index in range(level["requests"]):
        due = int(index * level["seconds"] * 1e9 / level["requests"])
        begin = int(due * drag)
        made.append(_record(index, level["name"], 0, due, begin, speed, begin + speed.whole))
    return made


def _record(index: int, level: str, stream: int, due: int, begin: int, speed: Speed, ended: int) -> dict[str, Any]:
    first = begin + speed.first * MS
    return {"i": index, "level": level, "stream": stream, "prompt": f"p{index % 3}", "round": index // 3,
            "t_planned": due, "t_start": begin, "t_sent": begin, "t_headers": begin + MS, "t_first": first,
            "t_first_output": first, "t_last": begin + speed.whole, "t_end": ended, "n_out": CHUNKS, "n_in": 8,
            "cached": 0, "chunks": CHUNKS, "max_gap_ns": speed.each * MS, "finish": "length", "status": 200,
            "cls": "ok"}  # fmt: skip
