"""No figure comes from the clock on the wall: it may be hours off, and jump while a phase runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import parse_records, summarise
from changectl.core.units import LevelLoad

# The sender's host: each look at its clock tells another day.
MAD_CLOCK = """
import itertools, runpy, sys, time
jumps = itertools.cycle([{ahead}, -{ahead}, 0.0, 3 * {ahead}])
true = time.time
time.time = lambda: true() + next(jumps)
time.time_ns = lambda: int(time.time() * 1e9)
sys.argv = [{program!r}]
runpy.run_path({program!r}, run_name="__main__")
"""


async def answer(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", 0.02)
    await talk.text("b", 0.02, finish="stop")
    await talk.usage(2)
    await talk.end()


@pytest.mark.parametrize("ahead", [0.0, 86400.0])
def test_a_clock_that_jumps_for_days_moves_no_time_stamp(program: Path, ahead: float) -> None:
    code = MAD_CLOCK.format(ahead=ahead, program=str(program))
    with Server(answer) as server:
        job = json.dumps(make_job(server.url, levels=[{"name": "low", "streams": 2, "requests": 10}]))
        done = subprocess.run(
            [sys.executable, "-c", code], input=job, capture_output=True, text=True, timeout=30, check=False
        )

    assert done.returncode == 0, done.stderr
    records = tuple(parse_records(done.stdout))
    assert all(record.ok and record.t_planned >= 0 for record in records)
    (level,) = summarise(records, {"low": LevelSize(LevelLoad(streams=2), requests=10)}).levels
    first = level.latency["ttft_user"]["p50"]
    assert first is not None
    assert 0.02 <= first < 2
    assert level.window is not None
    assert 0.15 <= level.window < 10


def test_the_summary_says_from_which_address_was_sent(generate: Callable[..., Result]) -> None:
    with Server(answer) as server:
        assert generate(make_job(server.url)).summary["source"] == "127.0.0.1"
