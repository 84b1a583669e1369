"""Timers: none is early, none is late by the clock of epoll, and nothing is bent where a clock runs ahead."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from time import perf_counter_ns
from typing import Any

from changectl.adapters.loadgen import loop
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.open_level import OpenRun


def test_no_duration_comes_from_a_clock_that_can_be_set() -> None:
    """Wall-clock time is read once, to say when the phase was; a clock that is set meanwhile moves nothing."""
    texts = [path.read_text(encoding="utf-8") for path in sorted(Path(loop.__file__).parent.glob("*.py"))]
    settable = [found for text in texts for found in re.findall(r"time\.time\w*\(|datetime|CLOCK_REALTIME", text)]

    assert settable == ["time.time("]


class Hasty(asyncio.SelectorEventLoop):
    """Its clock runs ahead, so that every timer fires when four fifths of its time are over."""

    def time(self) -> float:
        return super().time() * 1.25


class Notes:
    """Fulfils the client's part for a level: notes when each request was taken up."""

    stopping = False

    def __init__(self) -> None:
        self.taken_up: list[tuple[int, int]] = []  # when it was due, when it was taken up

    async def record(
        self, level: Level, item: Item, place: dict[str, Any], t_planned: int
    ) -> tuple[dict[str, Any], str]:
        self.taken_up.append((t_planned, perf_counter_ns()))
        return {**place, "cls": "ok"}, ""


def run_level(schedule: list[int], notes: Notes) -> OpenRun:
    level = Level("peak", None, 1.0, len(schedule))
    item = Item("a", {"prompt": "x"}, 1)
    return OpenRun(level, [item], notes, 0, schedule, deadline=2.0)


def test_no_request_begins_before_it_is_due_where_timers_fire_early() -> None:
    notes = Notes()
    hasty = Hasty()
    run = run_level([0, 10_000_000, 150_000_000, 151_000_000, 400_000_000], notes)

    hasty.run_until_complete(run.run())
    hasty.close()

    assert run.whole
    assert all(began >= due for due, began in notes.taken_up)
    assert [record["i"] for record in run.records] == [0, 1, 2, 3, 4]


def test_timers_are_not_rounded_up_to_milliseconds() -> None:
    """epoll alone waits a whole one for each of these; of so many, some are not held up by the machine's other work."""

    async def waits() -> list[int]:
        found = []
        for _ in range(300):
            begin = perf_counter_ns()
            await asyncio.sleep(0.0002)
            found.append(perf_counter_ns() - begin)
        return found

    found = loop.run(waits())

    assert min(found) < 900_000
    assert min(found) >= 199_000, "and none is early"


def test_what_a_program_leaves_running_is_ended_with_it() -> None:
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append("ended")

    async def program() -> str:
        task = asyncio.get_running_loop().create_task(forever())
        await asyncio.sleep(0)
        assert not task.done()
        return "done"

    assert (loop.run(program()), ended) == ("done", ["ended"])
