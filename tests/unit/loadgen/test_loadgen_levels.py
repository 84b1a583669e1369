"""Load: streams, order, salts, honesty about time, completeness, stopping."""

from __future__ import annotations

import ast
import asyncio
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.adapters.loadgen import build_zip
from changectl.adapters.loadgen.salt import salt, salted
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import parse_records, summarise
from changectl.core.units import LevelLoad

Generate = Callable[..., Result]
STUB = Path(__file__).resolve().parents[2] / "bench" / "stub.py"


def closed(streams: int, requests: int) -> LevelSize:
    return LevelSize(LevelLoad(streams=streams), requests=requests)


async def quick_answer(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", 0.01)
    await talk.text("b", 0.01, finish="stop")
    await talk.usage(2)
    await talk.end()


def test_every_request_is_sent_once_in_order_and_the_summary_says_so(generate: Generate) -> None:
    workload = [{"id": name, "prompt": name, "max_tokens": 4} for name in "abc"]
    levels = [{"name": "low", "streams": 1, "requests": 4}, {"name": "peak", "streams": 3, "requests": 9}]
    with Server(quick_answer) as server:
        result = generate(make_job(server.url, workload=workload, levels=levels, warmup={"requests": 3}))
    assert result.status == 0
    assert result.summary["sent"] == result.summary["recorded"] == len(server.seen) == 16
    low = [record for record in result.records if record.level == "low"]
    assert [(record.i, record.prompt, record.round) for record in low] == [
        (0, "a", 0),
        (1, "b", 0),
        (2, "c", 0),
        (3, "a", 1),
    ]
    measured = summarise(result.records, {"low": closed(1, 4), "peak": closed(3, 9)})
    assert measured.invalid == ()
    assert [(level.n, level.ok) for level in measured.levels] == [(4, 4), (9, 9)]


def test_as_many_requests_run_at_once_as_there_are_streams(generate: Generate) -> None:
    with Server(quick_answer) as server:
        generate(make_job(server.url, levels=[{"name": "peak", "streams": 5, "requests": 40}]))
    assert server.most_at_once == 5


def test_streams_start_one_after_the_other(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a", 0.4, finish="stop")
        await talk.end()

    with Server(script) as server:
        result = generate(make_job(server.url, levels=[{"name": "peak", "streams": 3, "requests": 3}], stagger=0.05))
    planned = [record.t_planned for record in result.records]
    assert [later - planned[0] for later in planned] == [0, 50_000_000, 100_000_000]


def test_a_request_is_due_the_moment_its_stream_became_free(generate: Generate) -> None:
    with Server(quick_answer) as server:
        result = generate(make_job(server.url, levels=[{"name": "low", "streams": 1, "requests": 5}]))
    for earlier, later in itertools.pairwise(result.records):
        assert later.t_planned == earlier.t_end


def test_no_request_begins_after_the_level_but_those_under_way_are_finished(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a", 0.3, finish="stop")
        await talk.end()

    with Server(script) as server:
        result = generate(make_job(server.url, levels=[{"name": "low", "streams": 1, "seconds": 0.4}]))
    assert [record.cls for record in result.records] == ["ok", "ok"]


def test_nothing_is_tried_twice(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        if talk.number % 3 == 0:
            await talk.status("503 Service Unavailable")
        else:
            await quick_answer(talk)

    with Server(script) as server:
        result = generate(make_job(server.url, levels=[{"name": "low", "streams": 1, "requests": 6}]))
    assert len(server.seen) == 6
    assert [record.cls for record in result.records] == ["http_5xx", "ok", "ok"] * 2


def test_prompts_are_new_in_every_round_level_and_phase_and_equally_long(generate: Generate) -> None:
    levels = [{"name": "low", "streams": 1, "requests": 3}, {"name": "peak", "streams": 1, "requests": 3}]
    with Server(quick_answer) as server:
        for phase in ("phase-1", "phase-2"):
            generate(make_job(server.url, levels=levels, salt=phase))
    prompts = [str(talk.body["prompt"]) for talk in server.seen]
    assert len(set(prompts)) == len(prompts) == 12
    assert {len(prompt.encode()) for prompt in prompts} == {len(salt("p", "l", 0, "a")) + len("hello")}


def test_requests_are_greedy_seeded_streamed_and_ask_for_usage(generate: Generate) -> None:
    with Server(quick_answer) as server:
        generate(make_job(server.url + "/base/", headers={"Authorization": "Bearer t0ken"}, body={"ignore_eos": True}))
    (talk,) = server.seen
    assert talk.method_and_path == "POST /base/v1/completions HTTP/1.1"
    assert talk.headers["authorization"] == "Bearer t0ken"
    expected = {"temperature": 0, "seed": 7, "stream": True, "max_tokens": 8, "model": "m", "ignore_eos": True}
    assert {name: talk.body[name] for name in expected} == expected
    assert talk.body["stream_options"] == {"include_usage": True}


def test_a_token_that_the_server_echoes_does_not_reach_the_records(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.status("401 Unauthorized", b'{"error": {"message": "bad key s3cret-key"}}')

    with Server(script) as server:
        result = generate(make_job(server.url, headers={"Authorization": "Bearer s3cret-key"}))
    assert "s3cret-key" not in result.output
    assert result.records[0].error == "bad key ***"


def test_only_quality_prompts_are_sent_unsalted_and_keep_their_text(generate: Generate) -> None:
    workload = [
        {"id": "a", "prompt": "hello", "max_tokens": 4},
        {"id": "q", "prompt": "2+2?", "max_tokens": 4, "quality": True},
    ]
    with Server(quick_answer) as server:
        result = generate(
            make_job(server.url, workload=workload, levels=[{"name": "low", "streams": 1, "requests": 2}])
        )
    assert server.seen[1].body["prompt"] == "2+2?"
    assert [record.text for record in result.records] == [None, "ab"]
    assert result.records[0].text_sha == result.records[1].text_sha


def test_a_stopped_server_shows_in_the_latency_that_users_felt(generate: Generate, tmp_path: Path) -> None:
    command = [
        sys.executable,
        str(STUB),
        "--ttft",
        "0.02",
        "--tpot",
        "0.002",
        "--tokens",
        "8",
        "--log",
        str(tmp_path / "log"),
    ]
    stub = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert stub.stdout is not None
    try:
        url = f"http://127.0.0.1:{int(stub.stdout.readline())}"
        job = make_job(url, levels=[{"name": "peak", "streams": 4, "seconds": 2.0}], deadline=5.0)
        pausing = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import os,time; time.sleep(1); os.kill({stub.pid}, 19); time.sleep(1); os.kill({stub.pid}, 18)",
            ]
        )
        result = generate(job)
        pausing.wait(timeout=10)
    finally:
        stub.kill()
        stub.wait()
        stub.stdout.close()
    slow = [record for record in result.records if (record.duration("e2e_user") or 0) > 0.5]
    assert len(slow) == 4, "every stream had one request under way when the server stopped"
    assert all(record.ok for record in result.records)
    for stream in range(4):
        mine = [record for record in result.records if record.stream == stream]
        assert all(b.t_planned == a.t_end for a, b in itertools.pairwise(mine)), "no time is left out"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_being_told_to_stop_records_what_was_under_way_and_is_not_success(program: Path, number: int) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await asyncio.sleep(10)

    with Server(script) as server:
        job = make_job(server.url, deadline=20.0, levels=[{"name": "low", "streams": 2, "requests": 9}])
        run = subprocess.Popen(
            [sys.executable, "-I", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert run.stdin is not None
        run.stdin.write(json.dumps(job))
        run.stdin.close()
        run.stdin = None
        deadline = time.monotonic() + 10
        while len(server.seen) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(run.pid, number)
        output, notes = run.communicate(timeout=10)
    assert run.returncode == 3
    records = tuple(parse_records(output))
    assert [record.cls for record in records] == ["client_abort"] * 2
    assert json.loads(notes.splitlines()[-1])["summary"]["whole"] is False


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"protocol": "grpc"}, "openai_chat"),
        ({"endpoint": "127.0.0.1:80"}, "http://HOST:PORT"),
        ({"endpoint": "http://u:p@h:1"}, "credentials"),
        ({"endpoint": "http://h:1/a b"}, "spaces"),
        ({"headers": {"Authorization": "Bearer a\nb"}}, "one line"),
        ({"headers": {"X Y": "b"}}, "one line"),
        ({"workload": []}, "empty"),
        ({"workload": [{"id": "a", "max_tokens": 3}]}, "messages"),
        ({"workload": [{"id": "a", "prompt": "x", "max_tokens": 1}] * 2}, "same id"),
        ({"levels": [{"name": "low", "streams": 1}]}, "seconds or requests"),
        ({"levels": [{"name": "warmup", "streams": 1, "requests": 1}]}, "warmup"),
        ({"levels": []}, "levels"),
        ({"deadline": 0}, "above zero"),
        ({"deadline": True}, "deadline"),
        ({"model": None}, "model"),
        ({"fresh_connections": False}, "fresh"),
    ],
)
def test_a_job_that_makes_no_sense_is_refused_with_the_reason(
    generate: Generate, change: dict[str, object], word: str
) -> None:
    result = generate(make_job("http://127.0.0.1:1", **change))
    assert (result.status, result.records) == (2, ())
    assert word in result.notes[-1]["error"]


def test_a_job_that_is_not_json_is_refused(generate: Generate) -> None:
    assert generate("{").status == 2


def test_the_program_is_the_same_bytes_every_time_and_holds_nothing_but_itself() -> None:
    packed = build_zip()
    assert packed == build_zip()
    names = zipfile.ZipFile(io.BytesIO(packed)).namelist()
    assert not [name for name in names if name.startswith("changectl/core")]
    assert {name.split("/")[0] for name in names} == {"__main__.py", "changectl", "h11"}
    assert len(packed) < 200_000


def test_the_program_is_written_in_the_syntax_of_python_3_8() -> None:
    archive = zipfile.ZipFile(io.BytesIO(build_zip()))
    for name in archive.namelist():
        ast.parse(archive.read(name), filename=name, feature_version=(3, 8))


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="there is no second Python here")
def test_the_program_runs_under_the_machine_s_own_python(generate: Generate) -> None:
    with Server(quick_answer) as server:
        assert generate(make_job(server.url), python="/usr/bin/python3").status == 0


def test_the_first_message_with_text_is_salted_and_the_others_are_not() -> None:
    contents = [[{"type": "text", "text": "x"}], "b", "c"]
    messages = [{"role": "user", "content": content} for content in contents]
    sent = salted({"messages": messages}, "S ")["messages"]
    assert [message["content"] for message in sent] == [contents[0], "S b", "c"]
