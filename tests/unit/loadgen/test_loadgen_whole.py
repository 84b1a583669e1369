"""Answers that come whole: what is measured, what is not, and the ways in which they fail, as bytes on a socket."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import Record, summarise
from changectl.core.units import LevelLoad

Generate = Callable[..., Result]
VECTOR = {"data": [{"embedding": [0.5, 1.5]}], "usage": {"prompt_tokens": 7, "total_tokens": 7}}
TENSOR = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}
ROW = {"id": "row", "inputs": [TENSOR]}


def embeddings_job(url: str, **changes: Any) -> dict[str, Any]:
    return make_job(url, protocol="openai_embeddings", **{"workload": [{"id": "a", "prompt": "hello"}], **changes})


def answer(message: object, line: str = "200 OK") -> Callable[[Conversation], Any]:
    async def script(talk: Conversation) -> None:
        await talk.status(line, message if isinstance(message, bytes) else json.dumps(message).encode())

    return script


def one(generate: Generate, script: Callable[[Conversation], Any]) -> Record:
    with Server(script) as server:
        (record,) = generate(embeddings_job(server.url)).records
    return record


def test_a_whole_answer_has_an_end_and_a_length_and_nothing_of_tokens_that_come_one_by_one(generate: Generate) -> None:
    record = one(generate, answer(VECTOR))

    assert (record.cls, record.n_in, record.n_out, record.chunks) == ("ok", 7, None, 0)
    assert (record.duration("e2e_user") or 0) > 0
    for metric in ("ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max"):
        assert (record.duration(metric), record.undefined(metric)) == (None, True)


def test_a_level_of_whole_answers_lacks_nothing_and_shows_no_zero(generate: Generate) -> None:
    with Server(answer(VECTOR)) as server:
        done = generate(embeddings_job(server.url, levels=[{"name": "low", "streams": 2, "requests": 24}]))
    (level,) = summarise(done.records, {"low": LevelSize(LevelLoad(streams=2), requests=24)}).levels

    assert (level.ok, level.missing, level.finish, level.tokens_in) == (24, {}, {"2 numbers": 24}, 24 * 7)
    assert level.rps_ok
    assert level.value("e2e_user", "p50")
    for metric in ("ttft_user", "tpot", "out_tok_s"):
        assert (level.value(metric), level.has_no_meaning(metric)) == (None, True)
    assert level.per_prompt == {"a": (7.0, None)}


@pytest.mark.parametrize(
    ("script", "cls", "error"),
    [
        (answer({"data": [{"embedding": []}]}), "empty", None),
        (answer({"error": {"message": "no room"}}), "inband_error", "no room"),
        (answer(b"<html>"), "malformed", "not JSON"),
        (answer({"error": "later"}, "503 Service Unavailable"), "http_5xx", "later"),
        (answer({"error": "slow down"}, "429 Too Many Requests"), "http_429", "slow down"),
    ],
)
def test_a_failure_is_named_and_has_no_latency(generate: Generate, script: Any, cls: str, error: str | None) -> None:
    record = one(generate, script)

    assert (record.cls, record.t_last) == (cls, None)
    assert record.error is error or str(error) in str(record.error)


def test_an_answer_that_is_cut_is_truncated_even_where_what_came_could_be_read(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        body = json.dumps(VECTOR).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body) + 2}\r\n\r\n"
        await talk.raw(head.encode() + body)

    assert one(generate, script).cls == "truncated"


def test_tensors_are_sent_as_they_are_in_every_round(generate: Generate) -> None:
    done = {"outputs": [{"name": "y", "shape": [1], "datatype": "INT64", "data": [3]}]}
    with Server(answer(done)) as server:
        levels = [{"name": "low", "streams": 1, "requests": 2}]
        result = generate(make_job(server.url, protocol="kserve_v2", model="iris", workload=[ROW], levels=levels))

    assert [record.cls for record in result.records] == ["ok", "ok"]
    assert [talk.method_and_path.split()[1] for talk in server.seen] == ["/v2/models/iris/infer"] * 2
    assert [talk.body for talk in server.seen] == [{"inputs": [TENSOR]}] * 2


def test_a_text_gets_the_words_that_make_it_new(generate: Generate) -> None:
    with Server(answer(VECTOR)) as server:
        generate(embeddings_job(server.url, levels=[{"name": "low", "streams": 1, "requests": 2}]))

    first, second = (str(talk.body["input"]) for talk in server.seen)
    assert first != second
    assert first.endswith(": hello")
