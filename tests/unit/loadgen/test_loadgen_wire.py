"""What servers and proxies do to bytes on their way, each as real bytes on a socket. What counts is what a user got.

All scripts answer one run of the generator, each the prompt of its own name; a test looks at that request's record.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import HEAD, LAST, Conversation, Script, Server

from changectl.core.measuring.measurement import Record

Generate = Callable[..., Result]
SCRIPTS: dict[str, dict[str, Script]] = {"openai_completions": {}, "openai_chat": {}}
CLOSED = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"


def served(script: Script) -> Script:
    """This script answers the prompt of its name."""
    SCRIPTS["openai_completions"][script.__name__] = script
    return script


def chatted(script: Script) -> Script:
    """The same for a conversation."""
    SCRIPTS["openai_chat"][script.__name__] = script
    return script


def event(text: str, finish: str | None = None) -> bytes:
    return b"data: " + json.dumps({"choices": [{"text": text, "finish_reason": finish}]}).encode() + b"\n\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass
class Seen:
    """Every script's record, and how often it was asked."""

    records: dict[str, Record]
    asked: list[str]

    def __getitem__(self, script: Script) -> Record:
        return self.records[script.__name__]


def name_of(talk: Conversation) -> str:
    """The prompt's own words, which stand behind its salt."""
    said = talk.body.get("prompt") or talk.body["messages"][-1]["content"]  # type: ignore[index]
    return str(said).rsplit(": ", 1)[1]


@pytest.fixture(scope="module")
def seen(module_generate: Generate) -> Seen:
    """One run per protocol; every script answers once."""
    found = Seen({}, [])

    async def dispatch(talk: Conversation) -> None:
        found.asked.append(name_of(talk))
        await scripts[name_of(talk)](talk)

    for protocol, scripts in SCRIPTS.items():
        workload = [{"id": name, "prompt": name, "max_tokens": 64} for name in scripts]
        levels = [{"name": "low", "streams": len(scripts), "requests": len(scripts)}]
        with Server(dispatch) as server:
            job = make_job(server.url, protocol=protocol, workload=workload, levels=levels, deadline=3.0)
            result = module_generate(job)
        assert result.status == 0
        assert all(isinstance(note, dict) for note in result.notes), "nothing but notes on stderr"
        found.records.update({record.prompt: record for record in result.records})
    return found


# Bytes that are cut, joined and wrapped


@served
async def lines_end_with_cr(talk: Conversation) -> None:
    await talk.head()
    await talk.raw(chunk(event("a").replace(b"\n", b"\r")))
    await asyncio.sleep(0.02)
    await talk.raw(chunk(event("b", "stop").replace(b"\n", b"\r")) + chunk(b"data: [DONE]\r\r") + LAST)


def test_lines_that_end_with_a_carriage_return_alone_are_lines(seen: Seen) -> None:
    assert seen[lines_end_with_cr].ok
    assert seen[lines_end_with_cr].chunks == 2


@served
async def begins_with_a_mark(talk: Conversation) -> None:
    await talk.head()
    await talk.raw(chunk(b"\xef\xbb\xbf" + event("a", "stop")) + LAST)


def test_a_byte_order_mark_before_the_first_event_hides_nothing(seen: Seen) -> None:
    assert seen[begins_with_a_mark].ok
    assert seen[begins_with_a_mark].chunks == 1


@served
async def ids_pings_and_retries(talk: Conversation) -> None:
    await talk.head()
    await talk.raw(chunk(b": ping\n\nid: 7\nretry: 10\n\n"))
    await asyncio.sleep(0.1)
    await talk.raw(chunk(b"id: 7\n" + event("a") + b": ping\n\n" + b"id: 7\n" + event("b", "stop")) + LAST)


def test_pings_ids_that_come_twice_and_retry_fields_are_no_tokens_and_nothing_is_asked_again(seen: Seen) -> None:
    record = seen[ids_pings_and_retries]
    assert record.ok
    assert record.chunks == 2
    assert (record.duration("ttft_user") or 0) > 0.095
    assert seen.asked.count("ids_pings_and_retries") == 1


@served
async def interim_answers(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.1 100 Continue\r\n\r\n")
    await talk.raw(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
    await asyncio.sleep(0.1)
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.end()


def test_an_interim_answer_is_not_the_answer(seen: Seen) -> None:
    record = seen[interim_answers]
    assert (record.cls, record.status) == ("ok", 200)
    assert record.t_headers is not None
    assert record.t_headers - record.t_planned > 95e6


@served
async def interim_and_gone(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.1 100 Continue\r\n\r\n")


def test_a_connection_that_ends_after_an_interim_answer_is_truncated(seen: Seen) -> None:
    record = seen[interim_and_gone]
    assert (record.cls, record.status, record.t_headers) == ("truncated", None, None)


@served
async def trailers(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.raw(b"0\r\nServer-Timing: total;dur=5\r\nX-Error: none\r\n\r\n")


def test_fields_behind_the_last_chunk_are_no_part_of_the_answer(seen: Seen) -> None:
    assert seen[trailers].ok


@served
async def old_http(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
    await talk.raw(event("a") + event("b", "stop"))


def test_an_answer_of_http_1_0_ends_where_the_connection_does(seen: Seen) -> None:
    assert seen[old_http].ok
    assert seen[old_http].chunks == 2


@served
async def old_http_cut(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + event("a"))


def test_an_answer_of_http_1_0_without_an_end_is_truncated_though_nobody_can_see_the_cut(seen: Seen) -> None:
    assert seen[old_http_cut].cls == "truncated"


@served
async def one_huge_event(talk: Conversation) -> None:
    await talk.head()
    await talk.raw(chunk(event("x" * 8_000_000, "stop")) + LAST)


def test_an_event_of_eight_megabytes_is_read_in_time(seen: Seen) -> None:
    assert seen[one_huge_event].ok
    assert seen[one_huge_event].text is None


@served
async def surrogates_apart(talk: Conversation) -> None:
    await talk.head()
    await talk.raw(chunk(b'data: {"choices": [{"text": "\\ud83d"}]}\n\n'))
    await talk.raw(chunk(b'data: {"choices": [{"text": "\\ude00", "finish_reason": "stop"}]}\n\n') + LAST)


def test_half_a_character_is_a_token_too(seen: Seen) -> None:
    assert seen[surrogates_apart].ok
    assert seen[surrogates_apart].chunks == 2


# What says that it is an answer and is none


@served
async def compressed(talk: Conversation) -> None:
    body = b"\x1f\x8b" + event("a", "stop")
    await talk.raw(CLOSED + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def test_a_compressed_answer_that_nobody_asked_for_is_not_called_empty(seen: Seen) -> None:
    assert seen[compressed].cls == "malformed"
    assert seen[compressed].error == "the answer is compressed (gzip), which was not asked for"


@served
async def nested_without_end(talk: Conversation) -> None:
    await talk.head()
    await talk.data('{"choices": ' + "[" * 200_000)
    await talk.end()


def test_json_that_is_nested_too_deeply_is_an_error_at_once_and_breaks_nothing(seen: Seen) -> None:
    record = seen[nested_without_end]
    assert record.cls == "inband_error"
    assert (record.error or "").startswith("not JSON")
    assert record.t_end is not None
    assert record.t_end - record.t_planned < 2.5e9


@served
async def chunks_of_no_size(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a")
    await talk.raw(b"zz\r\nnot a chunk\r\n")


def test_a_chunk_of_no_size_is_malformed_whatever_came_before(seen: Seen) -> None:
    assert seen[chunks_of_no_size].cls == "malformed"


@served
async def nothing_to_say(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")


def test_a_success_without_a_body_is_no_answer(seen: Seen) -> None:
    assert (seen[nothing_to_say].cls, seen[nothing_to_say].status) == ("malformed", 204)


@served
async def a_page_of_the_proxy(talk: Conversation) -> None:
    await talk.status("200 OK", b"<html>Please log in</html>", "text/html")


def test_a_page_of_somebody_else_with_status_200_is_no_answer(seen: Seen) -> None:
    assert seen[a_page_of_the_proxy].cls == "malformed"


# Ends


@served
async def length_beyond_the_body(talk: Conversation) -> None:
    body = event("a") + event("b", "stop")
    await talk.raw(CLOSED + b"Content-Length: %d\r\n\r\n%s" % (len(body) + 10, body))


def test_a_body_shorter_than_its_length_is_truncated_though_it_says_that_it_finished(seen: Seen) -> None:
    assert seen[length_beyond_the_body].cls == "truncated"


@served
async def length_within_the_body(talk: Conversation) -> None:
    body = event("a") + event("b", "stop")
    await talk.raw(CLOSED + b"Content-Length: %d\r\n\r\n%s" % (len(event("a")), body))


def test_what_lies_beyond_the_length_of_a_body_is_not_read(seen: Seen) -> None:
    assert (seen[length_within_the_body].cls, seen[length_within_the_body].chunks) == ("truncated", 1)


@served
async def ends_inside_an_event(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a")
    await talk.raw(chunk(event("b", "stop")[:30]) + LAST)


def test_a_stream_that_ends_inside_an_event_is_no_success(seen: Seen) -> None:
    assert not seen[ends_inside_an_event].ok
    assert seen[ends_inside_an_event].chunks == 1


@served
async def finish_without_marker(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.raw(LAST)


@served
async def marker_without_finish(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a")
    await talk.end()


def test_a_finish_reason_or_the_end_marker_is_enough(seen: Seen) -> None:
    assert (seen[finish_without_marker].cls, seen[finish_without_marker].finish) == ("ok", "stop")
    assert (seen[marker_without_finish].cls, seen[marker_without_finish].finish) == ("ok", None)


@served
async def text_after_the_end(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.data("[DONE]")
    await talk.text("b", 0.3)
    await talk.end()


def test_what_comes_after_the_end_marker_makes_the_answer_neither_longer_nor_slower(seen: Seen) -> None:
    record = seen[text_after_the_end]
    assert (record.cls, record.chunks) == ("ok", 1)
    assert record.t_end is not None
    assert record.t_last is not None
    assert record.t_end - record.t_last < 290e6


@served
async def stays_open(talk: Conversation) -> None:
    body = event("a", "stop")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n"
    await talk.raw(head + b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    await asyncio.sleep(2.5)


def test_a_server_that_keeps_a_connection_alive_unasked_does_not_make_the_answer_longer(seen: Seen) -> None:
    record = seen[stays_open]
    assert record.ok
    assert record.t_end is not None
    assert record.t_end - record.t_planned < 2.0e9


@served
async def reset(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a")
    await asyncio.sleep(0.05)
    raw = talk.writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    talk.writer.transport.abort()


def test_a_connection_that_is_reset_in_the_middle_is_truncated(seen: Seen) -> None:
    assert (seen[reset].cls, seen[reset].chunks) == ("truncated", 1)


@served
async def stalls(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a")
    await asyncio.sleep(4)


def test_an_answer_that_stands_still_in_the_middle_is_late_at_the_deadline(seen: Seen) -> None:
    record = seen[stalls]
    assert (record.cls, record.chunks) == ("late", 1)
    assert record.t_end is not None
    assert record.t_end - record.t_planned > 2.9e9


@served
async def half_a_head(talk: Conversation) -> None:
    await talk.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    await asyncio.sleep(4)


def test_half_a_head_is_no_head(seen: Seen) -> None:
    assert (seen[half_a_head].cls, seen[half_a_head].status) == ("read_timeout", None)


# Refusals


@served
async def come_back_later(talk: Conversation) -> None:
    await talk.raw(
        b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


@served
async def over_there(talk: Conversation) -> None:
    tail = b"/v1/completions\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    await talk.raw(b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://%s" % talk.headers["host"].encode() + tail)


def test_an_invitation_to_try_again_or_elsewhere_is_not_taken(seen: Seen) -> None:
    assert (seen[come_back_later].cls, seen[over_there].cls) == ("http_429", "http_other")
    assert (seen.asked.count("come_back_later"), seen.asked.count("over_there")) == (1, 1)


def test_every_script_was_asked_exactly_once(seen: Seen) -> None:
    assert sorted(seen.asked) == sorted(name for scripts in SCRIPTS.values() for name in scripts)


# Counts


@served
async def counts_as_it_goes(talk: Conversation) -> None:
    await talk.head()
    for count in (1, 2, 3):
        usage = {"prompt_tokens": 5, "completion_tokens": count}
        await talk.data({"choices": [{"text": "x"}], "usage": usage}, 0.01)
    await talk.data({"choices": [{"text": "", "finish_reason": "length"}], "usage": None})
    await talk.end()


def test_counts_that_grow_with_the_stream_count_once(seen: Seen) -> None:
    assert (seen[counts_as_it_goes].n_out, seen[counts_as_it_goes].n_in) == (3, 5)


@served
async def words_that_are_no_tokens(talk: Conversation) -> None:
    await talk.head()
    for _ in range(100):
        await talk.text("q z x ")
    await talk.text("", finish="length")
    await talk.usage(100)
    await talk.end()


def test_the_servers_own_count_wins_over_any_that_could_be_made_of_the_text(seen: Seen) -> None:
    assert (seen[words_that_are_no_tokens].n_out, seen[words_that_are_no_tokens].chunks) == (100, 100)


@served
async def counts_without_sense(talk: Conversation) -> None:
    await talk.head()
    await talk.text("a", finish="stop")
    await talk.data('{"choices": [], "usage": {"prompt_tokens": NaN, "completion_tokens": 1' + "0" * 400 + "}}")
    await talk.end()


def test_a_count_that_cannot_be_one_is_missing_and_breaks_no_record(seen: Seen) -> None:
    record = seen[counts_without_sense]
    assert (record.cls, record.n_in, record.n_out) == ("ok", None, None)


@served
async def all_at_once(talk: Conversation) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 20}
    tail = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"
    await talk.raw(HEAD + chunk(event("a whole answer", "stop") + tail) + LAST)


@served
async def held_back_by_a_proxy(talk: Conversation) -> None:
    usage = {"prompt_tokens": 5, "completion_tokens": 3}
    tail = b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n"
    await asyncio.sleep(0.1)
    await talk.raw(HEAD + chunk(event("a") + event("b") + event("c", "stop") + tail) + LAST)


@pytest.mark.parametrize("script", [all_at_once, held_back_by_a_proxy])
def test_an_answer_that_comes_all_at_once_has_no_time_per_token(seen: Seen, script: Script) -> None:
    record = seen[script]
    assert record.ok
    assert record.duration("tpot") is None
    assert record.undefined("tpot"), "zero would be the fastest of all"
    assert record.duration("e2e_user") == record.duration("ttft_user")


# Conversations


def saying(*deltas: dict[str, object]) -> Script:
    """A chat answer of these pieces."""

    async def script(talk: Conversation) -> None:
        await talk.head()
        for delta in deltas:
            await talk.delta(delta)
        await talk.delta({}, finish="stop")
        await talk.usage(4)
        await talk.end()

    return script


def calling(name: str, arguments: str, identity: str = "1") -> dict[str, object]:
    return {"tool_calls": [{"index": 0, "id": identity, "function": {"name": name, "arguments": arguments}}]}


DIGESTED = {
    "thought": saying({"reasoning": "so"}, {"reasoning": " it is"}, {"content": "Yes"}),
    "thought in other pieces": saying(
        {"reasoning": "so it"}, {"reasoning": " is"}, {"content": "Y"}, {"content": "es"}
    ),
    "other thoughts": saying({"reasoning": "so it is not"}, {"content": "Yes"}),
    "thoughts alone": saying({"reasoning": "so"}),
    "other thoughts alone": saying({"reasoning": "or"}),
    "spoken": saying({"content": "so"}),
    "called": saying(calling("look", "{}")),
    "called again": saying(calling("look", "{", "2"), {"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
    "called another": saying(calling("find", "{}")),
}


SCRIPTS["openai_chat"].update(DIGESTED)


def test_answers_are_the_same_when_all_that_was_thought_said_and_called_is(seen: Seen) -> None:
    digests = {name: seen.records[name].text_sha for name in DIGESTED}

    assert digests["thought"] == digests["thought in other pieces"]
    assert digests["called"] == digests["called again"]
    assert len(set(digests.values())) == len(digests) - 2


@chatted
async def calls_a_tool(talk: Conversation) -> None:
    await talk.head()
    await talk.delta({"role": "assistant", "content": None})
    await talk.delta({"tool_calls": [{"index": 0, "function": {"name": "look", "arguments": ""}}]}, 0.1)
    await talk.delta({"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]}, 0.02)
    await talk.delta({}, finish="tool_calls")
    await talk.usage(12)
    await talk.end()


def test_a_tool_call_is_an_answer_and_its_first_piece_the_first_token(seen: Seen) -> None:
    record = seen[calls_a_tool]
    assert (record.cls, record.finish, record.chunks) == ("ok", "tool_calls", 2)
    assert (record.duration("ttft_user") or 0) > 0.095
    assert record.t_first == record.t_first_output


@chatted
async def thinks_and_says_nothing(talk: Conversation) -> None:
    await talk.head()
    for _ in range(3):
        await talk.delta({"reasoning_content": "hm "}, 0.01)
    await talk.delta({}, finish="length")
    await talk.usage(3)
    await talk.end()


def test_reasoning_that_never_came_to_an_answer_has_a_first_token_and_no_first_output(seen: Seen) -> None:
    record = seen[thinks_and_says_nothing]
    assert record.ok
    assert record.duration("ttfo") is None
    assert record.undefined("ttfo")


def test_a_host_that_takes_no_connections_is_a_timeout_of_connecting(generate: Generate) -> None:
    """Its queue is full, so that it does not even refuse."""
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(full.getsockname())
        time.sleep(0.05)
        result = generate(make_job(f"http://127.0.0.1:{full.getsockname()[1]}", connect_timeout=0.3))
        for each in waiting:
            each.close()
    (record,) = result.records
    assert (record.cls, record.error) == ("connect_timeout", "no connection within 0.3 s")
    assert record.t_sent is None
