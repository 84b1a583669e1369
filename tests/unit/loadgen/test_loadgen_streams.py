"""Each way a stream can go wrong that has misled a benchmark somewhere, as real bytes on a socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import HEAD, LAST, Conversation, Script, Server

from changectl.core.measuring.measurement import Record

Generate = Callable[..., Result]


def one(generate: Generate, script: Script, **changes: object) -> Record:
    """The record of a single request against a scripted server."""
    with Server(script) as server:
        result = generate(make_job(server.url, **changes))
    assert result.status == 0
    (record,) = result.records
    return record


def ms(record: Record, metric: str) -> float:
    value = record.duration(metric)
    assert value is not None
    return value * 1000


def test_a_role_only_chunk_is_not_the_first_token(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.delta({"role": "assistant", "content": ""})
        await talk.delta({"content": "hi"}, 0.2)
        await talk.delta({}, finish="stop")
        await talk.usage(1)
        await talk.end()

    record = one(generate, script, protocol="openai_chat")
    assert record.ok
    assert 195 < ms(record, "ttft_user") < 900


def test_four_tokens_in_a_chunk_are_a_gap_of_forty_and_ten_per_token(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a")
        for _ in range(5):
            await talk.text("four", 0.04)
        await talk.text("", finish="length")
        await talk.usage(21)
        await talk.end()

    record = one(generate, script)
    # Upper bounds leave room for a busy machine: 40 would be the gap between chunks sold as the time per token.
    assert 9.5 < ms(record, "tpot") < 30
    assert 39 < ms(record, "icl_max") < 400
    assert (record.n_out, record.n_in, record.cached, record.chunks) == (21, 10, 2, 6)


def test_usage_and_end_marker_do_not_make_the_answer_longer(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a")
        await talk.text("b", finish="stop")
        await talk.usage(2, 1.0)
        await talk.end()

    record = one(generate, script)
    assert ms(record, "e2e_user") < 900
    assert record.t_end is not None
    assert record.t_end - record.t_planned > 290e6


@pytest.mark.parametrize("how", ["nothing", "end marker", "usage only", "zero tokens", "finish only"])
def test_an_answer_without_content_is_empty_and_has_no_latency(generate: Generate, how: str) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        if how == "usage only":
            await talk.usage(5)
        if how == "zero tokens":
            await talk.text("", finish="stop")
            await talk.usage(0)
        if how == "finish only":
            await talk.text("", finish="stop")
        if how in ("nothing", "finish only"):
            await talk.raw(LAST)
        else:
            await talk.end()

    record = one(generate, script)
    assert record.cls == "empty"
    assert record.duration("ttft_user") is None
    assert record.duration("e2e_user") is None


def test_an_empty_answer_is_good_where_the_prompt_expects_none(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("", finish="stop")
        await talk.end()

    workload = [{"id": "a", "prompt": "say nothing", "max_tokens": 8, "expect": "empty"}]
    assert one(generate, script, workload=workload).ok


@pytest.mark.parametrize(
    "message", [{"error": {"message": "out of memory"}}, {"object": "error", "message": "out of memory"}]
)
def test_an_error_inside_the_stream_is_a_failure_and_counts_no_tokens(
    generate: Generate, message: dict[str, object]
) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a")
        await talk.text("b")
        await talk.data(message)
        await talk.end()

    record = one(generate, script)
    assert (record.cls, record.error, record.n_out) == ("inband_error", "out of memory", None)


def test_an_error_as_the_first_event_is_a_failure_whatever_its_spelling(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        text = [b'data: {"error": "bad"}\n\n', b'error: {"code": 500}\n\n', b"event: error\ndata: bad\n\n"][talk.number]
        await talk.raw(b"%x\r\n%s\r\n" % (len(text), text) + LAST)

    with Server(script) as server:
        result = generate(make_job(server.url, levels=[{"name": "low", "streams": 1, "requests": 3}]))
    assert [record.cls for record in result.records] == ["inband_error"] * 3


def test_missing_usage_stays_missing(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a")
        await talk.text("b", finish="length")
        await talk.end()

    record = one(generate, script)
    assert record.ok
    assert (record.n_out, record.n_in, record.cached) == (None, None, None)
    assert record.duration("tpot") is None


def test_a_single_token_has_no_time_per_token(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.raw(HEAD)
        await talk.text("a", finish="length")
        await talk.usage(1)
        await talk.end()

    record = one(generate, script)
    assert record.ok
    assert record.duration("tpot") is None
    assert record.undefined("tpot")


@pytest.mark.parametrize("after", ["headers", "a token", "a finish reason"])
def test_a_cut_stream_is_truncated(generate: Generate, after: str) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        if after != "headers":
            await talk.text("a", finish="stop" if after == "a finish reason" else None)

    record = one(generate, script)
    assert record.cls == "truncated"
    if after == "headers":
        assert record.duration("ttft_user") is None


def test_a_stream_that_ends_without_finish_or_marker_is_truncated(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a")
        await talk.raw(LAST)

    assert one(generate, script).cls == "truncated"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("503 Service Unavailable", "http_5xx"),
        ("429 Too Many Requests", "http_429"),
        ("404 Not Found", "http_4xx"),
        ("302 Found", "http_other"),
    ],
)
def test_a_refusal_is_a_failure_of_its_class(generate: Generate, line: str, expected: str) -> None:
    async def script(talk: Conversation) -> None:
        await talk.status(line, b'{"error": {"message": "too busy"}}')

    record = one(generate, script)
    assert (record.cls, record.status, record.error) == (expected, int(line[:3]), "too busy")


def test_an_answer_that_is_not_streamed_is_not_measured_as_one(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.status("200 OK", b'{"choices": [{"text": "all at once"}]}')

    record = one(generate, script)
    assert record.cls == "malformed"
    assert record.error == "the answer is not an event stream"


def test_what_is_not_http_is_malformed(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.raw(b"SSH-2.0-OpenSSH\r\n\r\n")

    assert one(generate, script).cls == "malformed"


def test_reasoning_counts_as_the_first_token_and_the_first_output_is_told_apart(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.delta({"role": "assistant", "content": None})
        for _ in range(10):
            await talk.delta({"reasoning_content": "hm "}, 0.02)
        for _ in range(5):
            await talk.delta({"content": "so "}, 0.01)
        await talk.delta({}, finish="stop")
        await talk.usage(15)
        await talk.end()

    record = one(generate, script, protocol="openai_chat")
    assert 19 < ms(record, "ttft_user") < 190  # the first content comes after 210
    assert ms(record, "ttfo") > 205
    assert record.chunks == 15


def test_a_refused_connection_is_recorded_with_no_latency(generate: Generate) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        result = generate(make_job(url, levels=[{"name": "low", "streams": 1, "seconds": 0.35}]))
    assert result.status == 0
    assert {record.cls for record in result.records} == {"connect_refused"}
    assert len(result.records) <= 5, "a server that is down must not be hammered"
    assert all(record.t_first is None and record.t_sent is None for record in result.records)


def test_no_headers_by_the_deadline_is_a_read_timeout(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await asyncio.sleep(3)

    record = one(generate, script, deadline=0.3)
    assert record.cls == "read_timeout"
    assert record.t_end is not None
    assert 0.28 < (record.t_end - record.t_planned) / 1e9 < 2


def test_an_answer_still_under_way_at_the_deadline_is_late(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        for _ in range(100):
            await talk.text("x", 0.05)

    record = one(generate, script, deadline=0.3)
    assert record.cls == "late"
    assert not record.ok
    assert record.t_first is not None


def test_a_server_that_keeps_the_connection_open_after_the_end_marker_does_not_hold_up_the_stream(
    generate: Generate,
) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a", finish="stop")
        await talk.data("[DONE]")
        await asyncio.sleep(5)

    record = one(generate, script, deadline=4.0)
    assert record.ok
    assert record.t_end is not None
    assert record.t_end - record.t_planned < 1e9


def test_events_cut_at_any_byte_are_put_together(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        message = b'data: {"choices": [{"text": "\xc3\xa9", "finish_reason": "stop"}]}'
        text = b"\r\n\r\n".join((b": ping", message, b"data: [DONE]", b""))
        for position in range(len(text)):
            await talk.raw(b"1\r\n" + text[position : position + 1] + b"\r\n")
            await asyncio.sleep(0)
        await talk.raw(LAST)

    record = one(generate, script)
    assert record.ok
    assert record.chunks == 1


def test_blank_and_newline_tokens_are_tokens(generate: Generate) -> None:
    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text(" ")
        await talk.text("\n\n", 0.02, finish="length")
        await talk.usage(2)
        await talk.end()

    record = one(generate, script)
    assert record.ok
    assert record.chunks == 2
