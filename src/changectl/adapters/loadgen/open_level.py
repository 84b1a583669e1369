"""An open level: every request begins when its schedule says, whatever became of the others."""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.level import LevelRun

NO_STREAM = 0  # what the records say: nobody in an open level waits for an answer before asking again


class OpenRun(LevelRun):
    """One open level under way."""

    def __init__(
        self, level: Level, workload: List[Item], client: Client, phase_start_ns: int, schedule: List[int]
    ) -> None:
        super().__init__(level, workload, client, phase_start_ns)
        self._schedule = schedule

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        sent: List["asyncio.Task[Dict[str, Any]]"] = []
        for offset in self._schedule:
            t_planned = self._start_ns + offset
            await self._until(t_planned)
            if self._client.stopping:
                break
            sent.append(loop.create_task(self._send(self._take(), NO_STREAM, t_planned)))
        await asyncio.gather(*sent)
