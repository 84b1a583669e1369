"""One load level under way: what closed and open levels have in common."""

from __future__ import annotations

import asyncio
from time import perf_counter_ns
from typing import Any, Dict, List, Optional, Tuple

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.job import Item, Level

STOP_CHECK = 0.1  # seconds after which a wait asks whether the program was told to stop


class LevelRun:
    """One level. Records appear in `records` when their requests end; `_drive` says when they begin."""

    def __init__(self, level: Level, client: Client, phase_start_ns: int) -> None:
        self._level = level
        self._client = client
        self._phase_start_ns = phase_start_ns
        self._start_ns = 0
        self.taken = 0
        self.ended: Optional[float] = None  # seconds after which its figures were precise; None: not before its end
        self.records: List[Dict[str, Any]] = []

    async def run(self) -> None:
        """Send everything and wait for every answer."""
        self._start_ns = perf_counter_ns()
        await self._drive()
        self.records.sort(key=lambda record: int(record["i"]))

    async def _drive(self) -> None:
        raise NotImplementedError

    @property
    def name(self) -> str:
        """The level's."""
        return self._level.name

    @property
    def elapsed(self) -> float:
        """Seconds since the level began."""
        return (perf_counter_ns() - self._start_ns) / 1e9

    @property
    def whole(self) -> bool:
        """Whether everything that was to be sent was sent and recorded."""
        wanted = self._level.requests if self._level.counted else None
        return len(self.records) == self.taken > 0 and (wanted is None or wanted == self.taken)

    def _take(self) -> int:
        """The number of the next request."""
        self.taken += 1
        return self.taken - 1

    @staticmethod
    def _place(index: int, stream: int, round_number: int) -> Dict[str, int]:
        """Where in the level a request stands, as records say it."""
        return {"i": index, "stream": stream, "round": round_number}

    async def _send(self, item: Item, place: Dict[str, int], t_planned: int) -> Tuple[Dict[str, Any], str]:
        """Send a request that is due now, and keep its record; what it was answered."""
        record, said = await self._client.record(self._level, item, place, t_planned)
        self.records.append(record)
        return record, said

    async def _until(self, moment: int) -> None:
        """Wait for a moment of the clock, again where a timer fired early; once told to stop, no longer."""
        while not self._client.stopping:
            wait = (moment - perf_counter_ns()) / 1e9
            if wait <= 0:
                return
            await asyncio.sleep(min(wait, STOP_CHECK))
