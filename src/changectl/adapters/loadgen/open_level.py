"""An open level: every request begins when its schedule says, whatever became of the others.

Only a conversation's next turn may have to wait, for the answer that is part of it. It is due then when that has come,
as its user could not have asked before; and it is not sent at all when that never comes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Dict, List, Optional, Tuple

from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.level import LevelRun
from changectl.adapters.loadgen.turns import Planned, planned

NO_STREAM = 0  # what the records say: nobody in an open level waits for an answer before asking again
NO_ANSWER = "the turn before it got no good answer"
TOO_LATE = "the answer before it came later than a request may take"

Answered = Tuple[Dict[str, Any], Item, str]  # the record of a turn, what was sent, what was said


class OpenRun(LevelRun):
    """One open level under way; `deadline`: seconds that a turn waits at most for the answer before it."""

    def __init__(
        self,
        level: Level,
        workload: List[Item],
        client: Client,
        phase_start_ns: int,
        schedule: List[int],
        deadline: float,
    ) -> None:
        super().__init__(level, client, phase_start_ns)
        self._planned = list(zip(planned(schedule, workload, level.seconds or 0.0), schedule))  # noqa: B905  Python 3.8
        self._deadline_ns = int(deadline * 1e9)
        self._turns: Dict[int, "asyncio.Task[Answered]"] = {}  # those that another one waits for, by their place

    async def _drive(self) -> None:
        loop = asyncio.get_running_loop()
        sent: List["asyncio.Task[Answered]"] = []
        for one, offset in self._planned:
            t_planned = self._start_ns + offset
            await self._until(t_planned)
            if self._client.stopping:
                break
            place = self._take()
            before = None if one.after is None else self._turns.pop(one.after)
            task = loop.create_task(self._turn(place, one, t_planned, before))
            sent.append(task)
            if one.item.follow_ups:
                self._turns[place] = task
        await asyncio.gather(*sent)

    async def _turn(
        self, place: int, one: Planned, t_planned: int, before: Optional["asyncio.Task[Answered]"]
    ) -> Answered:
        if before is None:
            return await self._sent(place, one, one.item, t_planned)
        record, item, said = await before
        freed = int(record["t_end"] or 0) + self._phase_start_ns
        why = NO_ANSWER if record["cls"] != "ok" else TOO_LATE if freed > t_planned + self._deadline_ns else None
        if why is None and not self._client.stopping:
            return await self._sent(place, one, item.followed(said), max(t_planned, freed))
        record = self._client.not_sent(self._level, one.item, self._place(place, NO_STREAM, one.round), t_planned, why)
        self.records.append(record)
        return record, one.item, ""

    async def _sent(self, place: int, one: Planned, item: Item, t_planned: int) -> Answered:
        record, said = await self._send(item, self._place(place, NO_STREAM, one.round), t_planned)
        return record, item, said
