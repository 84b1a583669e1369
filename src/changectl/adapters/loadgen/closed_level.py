"""A closed level: streams that each send the next prompt when their last one is answered."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.deck import Deck
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.level import LevelRun

# A stream whose request failed at once waits, or a server that is down would be asked thousands of times a second.
FAILURE_PAUSE_NS = 100_000_000


class ClosedRun(LevelRun):
    """One closed level under way."""

    def __init__(self, level: Level, workload: List[Item], client: Client, phase_start_ns: int, stagger: float) -> None:
        super().__init__(level, client, phase_start_ns)
        self._deck = Deck(workload)
        self._stagger_ns = int(stagger * 1e9)

    async def _drive(self) -> None:
        await asyncio.gather(*(self._stream(number) for number in range(self._level.streams or 0)))

    async def _stream(self, number: int) -> None:
        t_planned = self._start_ns + number * self._stagger_ns
        while True:
            await self._until(t_planned)
            index = self._next(t_planned)
            if index is None:
                return
            record = await self._next_of_deck(index, number, t_planned)
            freed = int(record["t_end"]) + self._phase_start_ns
            t_planned = freed if record["cls"] == "ok" else max(freed, t_planned + FAILURE_PAUSE_NS)

    async def _next_of_deck(self, index: int, stream: int, t_planned: int) -> Dict[str, Any]:
        item, round_number = self._deck.take()
        record, said = await self._send(item, self._place(index, stream, round_number), t_planned)
        if record["cls"] == "ok":
            self._deck.answered(item, round_number, said)
        return record

    def _next(self, now: int) -> Optional[int]:
        """The number of the next request, or None when the level is over."""
        level = self._level
        if self._client.stopping or (level.requests is not None and self.taken >= level.requests):
            return None
        if level.seconds is not None and (now - self._start_ns) / 1e9 >= level.seconds:
            return None
        return self._take()
