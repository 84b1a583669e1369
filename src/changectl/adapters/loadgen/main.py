"""The program: a job on stdin, records on stdout, progress on stderr."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import socket
import sys
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from changectl.adapters.loadgen import loop as event_loop
from changectl.adapters.loadgen.client import Client, look_up
from changectl.adapters.loadgen.closed_level import ClosedRun
from changectl.adapters.loadgen.job import Job, JobError, Level, parse_job
from changectl.adapters.loadgen.level import LevelRun
from changectl.adapters.loadgen.open_level import OpenRun
from changectl.adapters.loadgen.relay import HOST, Relay
from changectl.adapters.loadgen.room import make_room
from changectl.adapters.loadgen.schedule import arrivals
from changectl.adapters.loadgen.self_test import self_test

DONE, BAD_JOB, STOPPED = 0, 2, 3
_TICK = 1.0


def main() -> int:
    """Run the job; returns the exit status."""
    try:
        job = parse_job(sys.stdin.read())
        if job.cpus:
            os.sched_setaffinity(0, job.cpus)
        schedules = {level.name: _schedule(level, job.seed) for level in job.levels if level.streams is None}
        make_room(job, schedules)
        _settle()
        tested = None if job.self_test is None else self_test(job.self_test)
        address = event_loop.run(look_up(job))
        way, relay = (address, job.endpoint.port), None
        if job.relay is not None:
            relay = Relay(*way, job.relay)
            way = (HOST, relay.port)
        try:
            return event_loop.run(_run(job, schedules, tested, address, way))
        finally:
            if relay is not None:
                relay.close()
    except JobError as error:
        _say({"error": str(error)})
        return BAD_JOB
    except OSError as error:  # an unknown name, a CPU that is not there, a certificate file, a reader that went away
        _say({"error": str(error)})
        return STOPPED


def _say(message: Dict[str, Any]) -> None:
    sys.stderr.write(json.dumps(message) + "\n")
    sys.stderr.flush()


def _schedule(level: Level, seed: int) -> List[int]:
    return arrivals(seed, level.name, level.requests or 0, level.seconds or 0.0)


def _settle() -> None:
    """Pauses of the garbage collector would be latency of the server; what lives now lives to the end."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


async def _run(
    job: Job,
    schedules: Mapping[str, List[int]],
    tested: Optional[Dict[str, Any]],
    address: str,
    way: Tuple[str, int],
) -> int:
    start_ns, wall = time.perf_counter_ns(), time.time()
    client = Client(job, way[0], start_ns, way[1])
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, client.stop)
    runs: List[LevelRun] = []
    for level in job.levels:
        run = _level_run(level, job, client, start_ns, schedules)
        runs.append(run)
        ticker = loop.create_task(_tick(level.name, level.seconds, run, client))
        try:
            await run.run()
        finally:
            ticker.cancel()
        _write(run.records)
        gc.collect()
        if client.stopping:
            break
    whole = not client.stopping and len(runs) == len(job.levels) and all(run.whole for run in runs)
    source = _source(address, job.endpoint.port)
    _say({"summary": {**_summary(runs, whole, wall, start_ns), "source": source, "self_test": tested}})
    return DONE if whole else STOPPED


def _level_run(level: Level, job: Job, client: Client, start_ns: int, schedules: Mapping[str, List[int]]) -> LevelRun:
    if level.streams is None:
        return OpenRun(level, job.workload, client, start_ns, schedules[level.name], job.deadline)
    return ClosedRun(level, job.workload, client, start_ns, job.stagger)


async def _tick(name: str, expected: Any, run: LevelRun, client: Client) -> None:
    while True:
        await asyncio.sleep(_TICK)
        progress = {"level": name, "done": len(run.records), "elapsed": round(run.elapsed, 3), "expected": expected}
        try:
            _say({"progress": progress})
        except OSError:  # nobody listens any more: the load must not go on without its master
            client.stop()
            return


def _write(records: List[Dict[str, Any]]) -> None:
    """Between levels only: a slow reader must not hold up the requests. The fields' names stand there once."""
    if not records:
        return
    fields = sorted(records[0])
    rows = ([record[name] for name in fields] for record in records)
    sys.stdout.write("".join(json.dumps(line) + "\n" for line in ({"fields": fields}, *rows)))
    sys.stdout.flush()


def _source(address: str, port: int) -> Optional[str]:
    """From which of this host's addresses the requests left; the kernel knows, and nothing is sent for it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as way:
        way.connect((address, port))
        return str(way.getsockname()[0])
    return None


def _summary(runs: List[LevelRun], whole: bool, wall: float, start_ns: int) -> Dict[str, Any]:
    used = time.process_time()
    elapsed = (time.perf_counter_ns() - start_ns) / 1e9
    return {
        "whole": whole,
        "sent": sum(run.taken for run in runs),
        "recorded": sum(len(run.records) for run in runs),
        "ended": {run.name: run.ended for run in runs if run.ended is not None},
        "wall_start": wall,
        "clock_start_ns": start_ns,
        "elapsed": round(elapsed, 3),
        "cpu_share": round(used / elapsed, 4) if elapsed else None,
        "python": sys.version.split()[0],
    }
