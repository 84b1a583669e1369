"""Open levels: requests come when their schedule says, whatever the service does, and all waiting is counted."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, as_if_idle, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.adapters.loadgen.schedule import arrivals
from changectl.core.judging.verdict import Verdict, judge_quick
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.measurement import Record, parse_records, summarise
from changectl.core.units import LevelLoad

Generate = Callable[..., Result]
STUB = Path(__file__).resolve().parents[2] / "bench" / "stub.py"
MS = 1_000_000


def peak(rate: float, seconds: float) -> dict[str, Any]:
    return {"name": "peak", "arrivals": "poisson", "requests": round(rate * seconds), "seconds": seconds}


def size(rate: float, seconds: float) -> dict[str, LevelSize]:
    return {"peak": LevelSize(LevelLoad(rate=rate), seconds)}


def measured(records: tuple[Record, ...], rate: float, seconds: float) -> tuple[Measurement, LevelMeasurement]:
    measurement = summarise(records, size(rate, seconds))
    return measurement, measurement.levels[0]


def user(record: Record) -> float:
    """Seconds until the user had the first token."""
    value = record.duration("ttft_user")
    assert value is not None
    return value


async def quick_answer(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", 0.01)
    await talk.text("b", 0.01, finish="stop")
    await talk.usage(2)
    await talk.end()


def slow_answer(seconds: float) -> Callable[[Conversation], Any]:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a", seconds, finish="stop")
        await talk.usage(1)
        await talk.end()

    return script


def test_every_request_is_due_when_the_schedule_of_the_seed_says(generate: Generate) -> None:
    levels = [peak(40, 1.0), {**peak(40, 1.0), "name": "other"}]
    with Server(quick_answer) as server:
        result = generate(make_job(server.url, levels=levels, seed=11))
        again = generate(make_job(server.url, levels=levels, seed=11))

    assert (result.status, result.summary["sent"], len(server.seen)) == (0, 80, 160)
    for level in ("peak", "other"):
        planned = [[r.t_planned for r in run.records if r.level == level] for run in (result, again)]
        gaps = [[later - earlier for earlier, later in itertools.pairwise(each)] for each in planned]
        schedule = arrivals(11, level, 40, 1.0)
        assert gaps[0] == gaps[1] == [later - earlier for earlier, later in itertools.pairwise(schedule)]
    assert [record.i for record in result.records] == [*range(40), *range(40)]


def test_no_request_waits_for_another_ones_answer(generate: Generate) -> None:
    """Answers take longer than all of the level, and still all are sent in time: the server's own count says so."""
    with Server(slow_answer(1.5)) as server:
        result = generate(make_job(server.url, levels=[peak(30, 1.0)], deadline=10.0))

    _, level = measured(result.records, 30, 1.0)
    assert server.most_at_once == level.in_flight_most == 30
    assert level.sent_rate == pytest.approx(30, rel=0.3)
    assert level.ok == 30


def test_what_the_server_counts_at_once_is_what_is_recorded(generate: Generate) -> None:
    with Server(slow_answer(0.2)) as server:
        result = generate(make_job(server.url, levels=[peak(40, 2.0)], deadline=10.0))

    _, level = measured(result.records, 40, 2.0)
    assert level.in_flight_most is not None
    assert level.in_flight_mean is not None
    assert abs(server.most_at_once - level.in_flight_most) <= 4
    # Little's law: rate times time under way; the machine may be busy, and every answer later than it should be.
    under_way = sum(r.t_end - r.t_start for r in result.records if r.t_end and r.t_start) / 1e9 / 80
    assert level.in_flight_mean == pytest.approx(40 * under_way, rel=0.25)


def test_what_waits_behind_a_full_service_waits_for_its_user_too(generate: Generate) -> None:
    """A rate above what the service does: a closed loop would slow down with it and show nothing."""
    room: list[asyncio.Semaphore] = []

    async def four_at_a_time(talk: Conversation) -> None:
        room[:] = room or [asyncio.Semaphore(4)]
        async with room[0]:  # 4 of 100 ms each: 40 a second
            await slow_answer(0.1)(talk)

    with Server(four_at_a_time) as server:
        result = generate(make_job(server.url, levels=[peak(80, 2.0)], deadline=20.0))

    _, level = measured(result.records, 80, 2.0)
    assert level.ok == 160
    first, last = result.records[:20], result.records[-20:]
    assert min(map(user, last)) > 1.0, "at the end, two seconds' work is waiting"
    assert sum(map(user, last)) > 3 * sum(map(user, first))
    assert level.in_flight_most is not None
    assert level.in_flight_most > 40
    assert level.rps_ok is not None
    assert level.rps_ok < 45, "the window is not cut where the sending ends"


@dataclass
class Pause:
    """When a process was stopped and went on, on the clock of the records."""

    stopped: int
    went_on: int


def stop_for(pid: int, seconds: float) -> Pause:
    """Stop a process for a time."""
    os.kill(pid, signal.SIGSTOP)
    stopped = perf_counter_ns()
    time.sleep(seconds)
    went_on = perf_counter_ns()
    os.kill(pid, signal.SIGCONT)
    return Pause(stopped, went_on)


@contextmanager
def paced_stub(folder: Path) -> Iterator[tuple[str, int]]:
    """Run the paced server as a process of its own; its address and its id."""
    pace = ["--ttft", "0.02", "--tpot", "0.002", "--tokens", "8", "--log", str(folder / "log")]
    stub = subprocess.Popen([sys.executable, str(STUB), *pace], stdout=subprocess.PIPE, text=True)
    assert stub.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(stub.stdout.readline())}", stub.pid
    finally:
        stub.kill()
        stub.wait()
        stub.stdout.close()


def started(program: Path, job: dict[str, Any]) -> subprocess.Popen[str]:
    """The program, a second after the job's level began."""
    client = subprocess.Popen([sys.executable, "-I", "-S", str(program)], text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    assert client.stdin is not None
    assert client.stderr is not None
    client.stdin.write(json.dumps(job))
    client.stdin.close()
    client.stdin = None
    assert "progress" in json.loads(client.stderr.readline())
    return client


def meanwhile(program: Path, job: dict[str, Any], act: Callable[[int], Pause]) -> tuple[tuple[Record, ...], Pause]:
    """Run the program and do something, given its id, once its level is a second old; the pause on its own clock."""
    client = started(program, job)
    pause = act(client.pid)
    output, notes = client.communicate(timeout=60)
    start = json.loads(notes.splitlines()[-1])["summary"]["clock_start_ns"]
    return tuple(parse_records(output)), Pause(pause.stopped - start, pause.went_on - start)


def test_a_server_that_stands_still_for_two_seconds_shows_in_every_request_that_was_due(
    program: Path, tmp_path: Path
) -> None:
    with paced_stub(tmp_path) as (url, server):
        job = make_job(url, levels=[peak(50, 7.0)], deadline=30.0, connect_timeout=20.0)
        records, pause = meanwhile(program, job, lambda client: stop_for(server, 2.0))

    _, level = measured(records, 50, 7.0)
    assert level.ok == level.n == 350
    late = level.value("ttft_user", "p99")
    assert late is not None
    assert late >= 1.5
    due = [record for record in records if pause.stopped < record.t_planned < pause.went_on]
    assert 70 <= len(due) <= 130, "about a hundred are due in two seconds"
    for record in due:
        assert user(record) * 1e9 >= pause.went_on - record.t_planned, "nobody was answered before it went on"


def test_a_client_that_stands_still_makes_the_comparison_invalid(program: Path) -> None:
    """Its own delay counts for the user, not as the service's, and is no finding about the service."""
    with Server(quick_answer) as server:
        job = make_job(server.url, levels=[peak(50, 3.0)], deadline=20.0)
        records, pause = meanwhile(program, job, lambda client: stop_for(client, 0.7))

    after, _ = measured(records, 50, 3.0)
    judgement = judge_quick(as_if_idle(after), after)
    assert judgement.verdict is Verdict.INVALID
    assert "generator_late" in [reason.code for reason in judgement.reasons]
    held = [record for record in records if pause.stopped < record.t_planned < pause.went_on - 300 * MS]
    assert held
    for record in held:
        sent = record.duration("ttft_sent")
        assert sent is not None
        assert user(record) - sent > 0.25, "what the client itself was late is no part of it from sending on"


def test_a_service_slower_than_its_deadline_is_late_throughout_and_regressed_not_nan(generate: Generate) -> None:
    with Server(quick_answer) as good, Server(slow_answer(3.0)) as hanging:
        sound = generate(make_job(good.url, levels=[peak(40, 1.0)])).records
        late = generate(make_job(hanging.url, levels=[peak(40, 1.0)], deadline=0.5)).records

    before, _ = measured(sound, 40, 1.0)
    after, level = measured(late, 40, 1.0)
    assert sum(level.failures.values()) == 40, "what was under way at the deadline is told"
    assert set(level.failures) <= {"late", "read_timeout"}
    assert level.rps_ok == 0
    assert level.value("ttft_user", "p50") == float("inf")
    assert judge_quick(as_if_idle(before), as_if_idle(after)).verdict is Verdict.REGRESSED
    json.dumps(after.to_json(), allow_nan=False)


def test_nothing_is_tried_twice_in_an_open_level(generate: Generate) -> None:
    async def every_third_is_refused(talk: Conversation) -> None:
        await (talk.status("503 Service Unavailable") if talk.number % 3 == 0 else quick_answer(talk))

    with Server(every_third_is_refused) as server:
        result = generate(make_job(server.url, levels=[peak(30, 1.0)]))

    assert len(server.seen) == 30
    assert sum(record.cls == "http_5xx" for record in result.records) == 10


def test_a_server_that_is_down_is_asked_as_often_as_planned(generate: Generate) -> None:
    result = generate(make_job("http://127.0.0.1:1", levels=[peak(30, 1.0)]))

    _, level = measured(result.records, 30, 1.0)
    assert (result.status, level.failures) == (0, {"connect_refused": 30})
    assert level.sent_rate == pytest.approx(30, rel=0.3)


@pytest.mark.parametrize("wait", ["for the next request", "for an answer"])
def test_being_told_to_stop_ends_an_open_level_at_once(program: Path, wait: str) -> None:
    level = peak(0.05, 200.0) if wait == "for the next request" else peak(20, 1.0)
    with Server(slow_answer(20.0)) as server:
        run = started(program, make_job(server.url, levels=[level], deadline=100.0))
        run.terminate()
        output, notes = run.communicate(timeout=10)

    assert run.returncode == 3
    assert {record.cls for record in parse_records(output)} <= {"client_abort"}
    assert json.loads(notes.splitlines()[-1])["summary"]["whole"] is False


def run_with_open_files(program: Path, job: dict[str, Any], soft: int, hard: int) -> subprocess.CompletedProcess[str]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    return subprocess.run(
        [sys.executable, "-I", "-S", str(program)], input=json.dumps(job), capture_output=True, text=True, check=False,
        timeout=30, preexec_fn=limit,
    )  # fmt: skip


def test_a_host_that_cannot_hold_all_requests_at_once_refuses_before_the_first(program: Path) -> None:
    with Server(quick_answer) as server:
        done = run_with_open_files(program, make_job(server.url, levels=[peak(100, 2.0)], deadline=60.0), 64, 128)

    assert (done.returncode, done.stdout, server.seen) == (2, "", [])
    told = json.loads(done.stderr.splitlines()[-1])["error"]
    assert "200 requests may be under way at once (each for up to 60 s)" in told
    assert "this host allows 128" in told
    assert "lower the rate" in told


def test_a_soft_limit_is_raised_as_far_as_needed(program: Path) -> None:
    with Server(slow_answer(1.5)) as server:
        done = run_with_open_files(program, make_job(server.url, levels=[peak(80, 1.0)], deadline=9.0), 40, 400)

    assert done.returncode == 0
    assert {record.cls for record in parse_records(done.stdout)} == {"ok"}


def test_only_what_may_really_be_open_at_once_needs_room(program: Path) -> None:
    """200 requests in 20 s that get 1 s each: the most within that time and the pause after an end marker, not 200."""
    with Server(quick_answer) as server:
        done = run_with_open_files(program, make_job(server.url, levels=[peak(40, 5.0)], deadline=0.5), 64, 160)

    assert done.returncode == 0


def test_a_request_without_room_is_the_senders_failure_and_named_as_that(program: Path) -> None:
    """Whoever takes the room away meanwhile: here, descriptors that the program inherited and does not know of."""
    with Server(slow_answer(1.5)) as server:
        files = [os.open(os.devnull, os.O_RDONLY) for _ in range(60)]
        for file in files:
            os.set_inheritable(file, True)
        try:
            limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))  # noqa: E731
            done = subprocess.run(
                [sys.executable, "-I", "-S", str(program)],
                input=json.dumps(make_job(server.url, levels=[peak(60, 1.0)], deadline=9.0)),
                capture_output=True, text=True, check=False, timeout=30, preexec_fn=limit, close_fds=False,
            )  # fmt: skip
        finally:
            for file in files:
                os.close(file)

    records = tuple(parse_records(done.stdout))
    measurement, level = measured(records, 60, 1.0)
    assert level.failures["client_limit"] > 0
    judgement = judge_quick(measurement, measurement)
    assert judgement.verdict is Verdict.INVALID
    assert "sender_full" in [reason.code for reason in judgement.reasons]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"arrivals": "constant"}, "poisson"),
        ({"arrivals": None}, "streams, or arrivals"),
        ({"streams": 2}, "at least one stream"),
        ({"requests": None}, "seconds and requests"),
        ({"seconds": None}, "seconds and requests"),
        ({"requests": 0}, "from 1 to 1000000"),
        ({"requests": 1_000_001}, "from 1 to 1000000"),
        ({"seconds": -1}, "above zero"),
    ],
)
def test_an_open_level_that_makes_no_sense_is_refused(generate: Generate, change: dict[str, Any], word: str) -> None:
    result = generate(make_job("http://127.0.0.1:1", levels=[{**peak(10, 1.0), **change}]))

    assert (result.status, result.records) == (2, ())
    assert word in result.notes[-1]["error"]


def test_an_open_level_is_warmed_up_by_streams(generate: Generate) -> None:
    with Server(slow_answer(0.05)) as server:
        job = make_job(server.url, levels=[peak(10, 1.0)], warmup={"requests": 12, "streams": 6})
        result = generate(job)

    warmup = [record for record in result.records if record.level == "warmup"]
    assert (len(warmup), len({record.stream for record in warmup})) == (12, 6)
    assert max(record.t_end or 0 for record in warmup) < min(r.t_planned for r in result.records if r.level == "peak")
