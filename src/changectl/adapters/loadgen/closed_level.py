"""A closed level: streams that each send the next prompt when their last one is answered."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional, Tuple

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.deck import Deck
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.level import LevelRun
from changectl.adapters.loadgen.precise import Precision

# A stream whose request failed at once waits, or a server that is down would be asked thousands of times a second.
FAILURE_PAUSE_NS = 100_000_000


class ClosedRun(LevelRun):
    """One closed level under way. Where the job says how precise is enough, it ends as soon as its figures are that."""

    def __init__(self, level: Level, workload: List[Item], client: Client, phase_start_ns: int, stagger: float) -> None:
        super().__init__(level, client, phase_start_ns)
        self._deck = Deck(workload)
        self._stagger_ns = int(stagger * 1e9)
        self._precision = None if level.enough is None else Precision(level.enough, len(workload))

    async def _drive(self) -> None:
        await asyncio.gather(*(self._stream(number) for number in range(self._level.streams or 0)))

    async def _stream(self, number: int) -> None:
        t_planned = self._start_ns + number * self._stagger_ns
        while True:
            await self._until(t_planned)
            dealt = self._next(t_planned)
            if dealt is None:
                return
            record = await self._answered(dealt, number, t_planned)
            freed = int(record["t_end"]) + self._phase_start_ns
            t_planned = freed if record["cls"] == "ok" else max(freed, t_planned + FAILURE_PAUSE_NS)

    async def _answered(self, dealt: Tuple[Item, int], stream: int, t_planned: int) -> Dict[str, Any]:
        item, round_number = dealt
        record, said = await self._send(item, self._place(self._take(), stream, round_number), t_planned)
        good = record["cls"] == "ok"
        if good:
            self._deck.answered(item, round_number, said)
        if self._precision is not None:
            self._precision.add(record, round_number, not (good and item.follow_ups))
        return record

    def _next(self, now: int) -> Optional[Tuple[Item, int]]:
        """The next request, and its round; None when the level is over."""
        level = self._level
        if self._client.stopping or (level.requests is not None and self.taken >= level.requests):
            return None
        if level.seconds is not None and (now - self._start_ns) / 1e9 >= level.seconds:
            return None
        if self._precision is not None and self._deck.between_rounds and self._precision.reached():
            self._deck.close()
            self.ended = round((now - self._start_ns) / 1e9, 6)
        return self._deck.take()
