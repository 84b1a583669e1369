from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl import loads
from changectl.core.errors import InputError
from changectl.core.measuring.metrics import METRICS
from changectl.loads import openai_chat, openai_completions
from changectl.loads._sse import Event, EventReader

SETTINGS = {"model": "m", "max_tokens": 5, "seed": 3}


def test_every_protocol_in_the_folder_is_loaded_by_its_name() -> None:
    assert loads.names() == ("kserve_v2", "openai_chat", "openai_completions", "openai_embeddings")
    for name in loads.names():
        member = loads.load(name)
        assert name == member.NAME
        assert set(member.METRICS) <= set(METRICS)
        assert {METRICS[metric].source for metric in member.METRICS} == {"load"}


def test_an_unknown_protocol_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="openai_chat, openai_completions, openai_embeddings"):
        loads.load("grpc")


def test_the_completions_request_is_greedy_and_streams() -> None:
    method, path, headers, body = openai_completions.build_request({"prompt": "hi"}, SETTINGS)
    assert (method, path) == ("POST", "/v1/completions")
    assert ("Content-Type", "application/json") in headers
    assert json.loads(body) == {
        "model": "m",
        "prompt": "hi",
        "max_tokens": 5,
        "temperature": 0,
        "seed": 3,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def test_a_prompt_becomes_a_message_and_messages_become_a_prompt() -> None:
    chat = json.loads(openai_chat.build_request({"prompt": "hi"}, SETTINGS)[3])
    assert chat["messages"] == [{"role": "user", "content": "hi"}]
    messages = [{"role": "system", "content": "be"}, {"role": "user", "content": "hi"}]
    assert json.loads(openai_completions.build_request({"messages": messages}, SETTINGS)[3])["prompt"] == "be\nhi"


def test_usage_is_left_out_where_the_server_does_not_take_it() -> None:
    body = json.loads(openai_chat.build_request({"prompt": "hi"}, {**SETTINGS, "include_usage": False})[3])
    assert "stream_options" not in body


def delta(**fields: object) -> Event:
    return Event("", json.dumps({"choices": [{"delta": fields}]}))


@pytest.mark.parametrize(
    ("event", "content"),
    [
        (delta(role="assistant"), False),
        (delta(role="assistant", content=""), False),
        (delta(content=None), False),
        (delta(content=" "), True),
        (delta(reasoning_content="hm"), True),
        (delta(reasoning="hm"), True),
        (delta(tool_calls=[{"index": 0}]), True),
        (delta(tool_calls=[]), False),
        (Event("", '{"choices": []}'), False),
        (Event("", '{"choices": [{"finish_reason": "stop"}]}'), False),
        (Event("", '{"prompt_progress": {"processed": 5}}'), False),
    ],
)
def test_only_content_reasoning_and_tool_calls_are_tokens(event: Event, content: bool) -> None:
    assert openai_chat.classify(event).content is content


def test_cached_tokens_are_read_from_usage_or_from_timings() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}}
    piece = openai_completions.classify(Event("", json.dumps({"choices": [], "usage": usage})))
    assert piece.usage == (9, 4, 3)
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    piece = openai_completions.classify(Event("", json.dumps({"usage": usage, "timings": {"cache_n": 0}})))
    assert piece.usage == (9, 4, 0)


@pytest.mark.parametrize("wrong", ["x", True, -1, 1.5, None])
def test_a_count_that_is_no_count_is_missing(wrong: object) -> None:
    event = Event("", json.dumps({"choices": [], "usage": {"completion_tokens": wrong}}))
    assert openai_completions.classify(event).usage == (None, None, None)


@pytest.mark.parametrize("data", ["[1]", "nonsense", "7"])
def test_data_that_is_no_message_is_an_error(data: str) -> None:
    assert openai_chat.classify(Event("", data)).error


KEYS = ("choices", "delta", "text", "content", "usage", "error", "timings", "finish_reason", "object")
SCALARS = st.none() | st.booleans() | st.integers() | st.text()
ANY_JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner))


@given(ANY_JSON)
def test_no_json_whatever_its_shape_breaks_the_reading(message: object) -> None:
    for member in (openai_chat, openai_completions):
        member.classify(Event("", json.dumps(message)))


@given(st.lists(st.integers(1, 7), max_size=60), st.sampled_from([b"\n", b"\r\n"]))
def test_events_are_the_same_however_the_bytes_were_cut(cuts: list[int], newline: bytes) -> None:
    text = newline.join(
        [b": ping", b"", b"data: one", b"data: two", b"", b"event: error", b"data:three", b"", b"data: 4"]
    )
    reader, events, position = EventReader(), [], 0
    for cut in [*cuts, len(text)]:
        events += reader.feed(text[position : position + cut])
        position += cut
    events += reader.finish()
    assert events == [Event("", "one\ntwo"), Event("error", "three"), Event("", "4")]
