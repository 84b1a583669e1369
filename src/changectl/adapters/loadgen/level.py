"""A closed level: streams that each send the next prompt when their last one is answered."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import Any, Dict, List, Optional

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.job import Item, Level

# A stream whose request failed at once waits, or a server that is down would be asked thousands of times a second.
FAILURE_PAUSE_NS = 100_000_000


class LevelRun:
    """One level under way. Records appear in `records` when their requests end."""

    def __init__(self, level: Level, workload: List[Item], client: Client, stagger: float, start_ns: int) -> None:
        self._level = level
        self._workload = workload
        self._client = client
        self._stagger_ns = int(stagger * 1e9)
        self._phase_start_ns = start_ns
        self._start_ns = 0
        self.taken = 0
        self.records: List[Dict[str, Any]] = []

    async def run(self) -> None:
        """Run all streams to their end."""
        self._start_ns = perf_counter_ns()
        await asyncio.gather(*(self._stream(number) for number in range(self._level.streams)))
        self.records.sort(key=lambda record: int(record["i"]))

    @property
    def elapsed(self) -> float:
        """Seconds since the level began."""
        return (perf_counter_ns() - self._start_ns) / 1e9

    @property
    def whole(self) -> bool:
        """Whether everything that was to be sent was sent and recorded."""
        wanted = self._level.requests if self._level.seconds is None else None
        return len(self.records) == self.taken > 0 and (wanted is None or wanted == self.taken)

    async def _stream(self, number: int) -> None:
        t_planned = self._start_ns + number * self._stagger_ns
        while True:
            wait = (t_planned - perf_counter_ns()) / 1e9
            if wait > 0:
                await asyncio.sleep(wait)
            index = self._take(t_planned)
            if index is None:
                return
            item = self._workload[index % len(self._workload)]
            place = {"i": index, "stream": number, "round": index // len(self._workload)}
            record = await self._client.record(self._level, item, place, t_planned)
            self.records.append(record)
            freed = int(record["t_end"]) + self._phase_start_ns
            t_planned = freed if record["cls"] == "ok" else max(freed, t_planned + FAILURE_PAUSE_NS)

    def _take(self, now: int) -> Optional[int]:
        """The number of the next request, or None when the level is over."""
        level = self._level
        if self._client.stopping or (level.requests is not None and self.taken >= level.requests):
            return None
        if level.seconds is not None and (now - self._start_ns) / 1e9 >= level.seconds:
            return None
        self.taken += 1
        return self.taken - 1
