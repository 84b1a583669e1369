"""What is found in logs and data sets, what is left out and why, and which are taken."""

from __future__ import annotations

import json
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.workload import requests as workload
from changectl.core.workload.choice import choose, entries
from changectl.core.workload.source import (
    NO_JSON,
    NO_REQUEST,
    NOT_TEXT,
    NOT_UTF8,
    SECRET,
    Candidate,
    LeftOut,
    candidates,
    text_of,
)

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 9, "stream": True}
TENSOR = {"name": "x", "shape": [1], "datatype": "FP32", "data": [0.5]}


def found(*objects: Any, kind: str = "chat") -> list[Candidate | LeftOut]:
    return list(candidates("\n".join(json.dumps(each) for each in objects), kind))


def only(*objects: Any, kind: str = "chat") -> Candidate:
    (one,) = found(*objects, kind=kind)
    assert isinstance(one, Candidate), one
    return one


def test_a_request_body_becomes_a_line_and_nothing_of_it_but_what_is_asked() -> None:
    one = only({**CHAT, "user": "alice@example.org", "temperature": 0.7})

    assert one.entry == {"messages": CHAT["messages"], "max_tokens": 9}
    assert one.limit == "said"


@pytest.mark.parametrize(
    "row",
    [
        {"conversations": [{"role": "user", "content": "Hi"}, {"role": "user", "content": ""}]},
        {"conversations": [{"role": "user", "content": ""}]},
        {"conversations": [{"role": "system", "content": ""}, {"role": "user", "content": "Hi"}]},
    ],
)
def test_what_no_workload_takes_is_left_out_and_said(row: dict[str, Any]) -> None:
    (one,) = found(row)
    assert isinstance(one, LeftOut)
    assert "has to be" in one.why


@pytest.mark.parametrize("key", ["request_body", "body", "request"])
@pytest.mark.parametrize("as_text", [True, False])
def test_the_body_is_found_in_a_log_whether_it_stands_there_as_text_or_not(key: str, as_text: bool) -> None:
    body = json.dumps(CHAT) if as_text else CHAT
    logged = {"time": "12:00", "authorization": "Bearer sk-abcdefgh12345678", "status": 200, key: body}

    assert only(logged).entry == {"messages": CHAT["messages"], "max_tokens": 9}


def test_a_log_line_may_begin_with_other_text() -> None:
    line = f'10.0.0.1 - [30/Nov/2026] "POST /v1/chat/completions" 200 {json.dumps(CHAT)} 0.231'

    (one,) = candidates(line, "chat")

    assert isinstance(one, Candidate)


def test_a_data_sets_conversation_becomes_turns_without_what_the_model_said() -> None:
    rows = [("system", "Be brief."), ("human", "one?"), ("gpt", "a" * 400), ("human", "two?"), ("gpt", "b")]
    one = only({"id": "x", "conversations": [{"from": who, "value": text} for who, text in rows]})

    assert one.entry == {"system": "Be brief.", "turns": ["one?", "two?"], "max_tokens": 100}
    assert one.limit == "answered"


def test_a_conversation_of_one_turn_is_a_prompt() -> None:
    one = only({"conversations": [{"from": "human", "value": "one?"}]})

    assert (one.entry, one.limit) == ({"prompt": "one?", "max_tokens": 256}, "assumed")


def test_the_answer_that_ends_a_data_sets_messages_is_not_sent() -> None:
    one = only({"messages": [*CHAT["messages"], {"role": "assistant", "content": "x" * 40}]})

    assert one.entry == {"messages": CHAT["messages"], "max_tokens": 10}


def test_how_long_an_answer_was_comes_from_the_response_that_was_logged() -> None:
    body = {"prompt": "x"}
    one = only({"request": body, "response": {"usage": {"completion_tokens": 33}}}, kind="completions")

    assert (one.entry, one.limit) == ({"prompt": "x", "max_tokens": 33}, "answered")


def test_an_instruction_and_its_input_are_one_prompt() -> None:
    one = only({"instruction": "Translate.", "input": "the sea", "output": "la mer" * 10})

    assert one.entry == {"prompt": "Translate.\n\nthe sea", "max_tokens": 15}


def test_a_list_in_one_document_is_read_as_lines_are() -> None:
    both = list(candidates(json.dumps([CHAT, CHAT], indent=1), "chat"))

    assert [one.place for one in both] == [1, 2]


def test_texts_to_embed_and_tensors_are_found_by_their_kind() -> None:
    assert only({"model": "m", "input": "rain"}, kind="embeddings").entry == {"prompt": "rain"}
    assert only({"body": {"inputs": [TENSOR]}}, kind="kserve").entry == {"inputs": [TENSOR]}
    assert found({"inputs": [{**TENSOR, "data": []}]}, kind="kserve") == [LeftOut(1, NO_REQUEST)]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("GET /health 200", NO_JSON),
        ('{"broken": ', NO_JSON),
        ('{"status": 200}', NO_REQUEST),
        ('{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}', NOT_TEXT),
        ('{"conversations": [{"from": "human", "value": 3}]}', NOT_TEXT),
        ('{"prompt": "my key is sk-abcdefgh12345678, use it"}', SECRET),
        ('{"prompt": "login with password=hunter2hunter2"}', SECRET),
        ('{"turns": ["hello", "-----BEGIN PRIVATE KEY-----\\nMIIEvQIBADANBg\\n-----END PRIVATE KEY-----"]}', SECRET),
    ],
)
def test_what_is_left_out_has_a_reason(line: str, why: str) -> None:
    assert list(candidates(line, "chat")) == [LeftOut(1, why)]


@pytest.mark.parametrize(
    "data",
    [
        '{"prompt": "Grüße"}'.encode("latin-1"),
        '{"prompt": "Grüße"}'.encode("utf-16"),
        '["a", {"prompt": "Grüße"}]'.encode("latin-1"),
        zlib.compress(b'{"prompt": "Hello"}'),
    ],
    ids=["latin-1", "utf-16", "a list", "packed"],
)
def test_bytes_that_are_no_text_are_left_out_and_never_become_other_words(data: bytes) -> None:
    assert set(candidates(text_of(data), "chat")) == {LeftOut(1, NOT_UTF8)}


def test_one_line_that_is_no_text_spoils_no_other() -> None:
    lines = [json.dumps({"prompt": "Grüße"}, ensure_ascii=False).encode(code) for code in ("utf-8", "latin-1")]
    good, bad = candidates(text_of(b"\n".join(lines)), "chat")

    assert isinstance(good, Candidate)
    assert good.entry["prompt"] == "Grüße"
    assert bad == LeftOut(2, NOT_UTF8)


def test_what_was_found_is_a_workload() -> None:
    taken = [one for one in found(CHAT, {"prompt": "x"}, {"turns": ["a", "b"]}) if isinstance(one, Candidate)]
    text = "".join(json.dumps(entry) + "\n" for entry in entries(taken))

    assert [entry["id"] for entry in workload.load(text.encode(), "w", "openai_chat").entries] == [
        "line-1", "line-2", "line-3",
    ]  # fmt: skip


def many(sizes: list[int]) -> list[Candidate]:
    return [Candidate(place, {"prompt": "x"}, (size, 0), "said") for place, size in enumerate(sizes, start=1)]


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=200), st.integers(1, 50), st.integers(0, 9))
def test_what_is_taken_is_spread_over_all_lengths_and_the_same_for_one_seed(
    sizes: list[int], requests: int, seed: int
) -> None:
    every = many(sizes)
    taken = choose(every, requests, seed)

    assert taken == choose(every, requests, seed)
    assert len(taken) == min(requests, len(sizes))
    assert len({one.place for one in taken}) == len(taken)
    ordered, own = sorted(sizes), sorted(one.size[0] for one in taken)
    for number, size in enumerate(own):  # each from its own part of the whole
        first, last = (len(ordered) * part // len(own) for part in (number, number + 1))
        assert ordered[first] <= size <= ordered[last - 1]


def test_another_seed_takes_others() -> None:
    every = many(list(range(1, 1001)))

    assert choose(every, 20, 1) != choose(every, 20, 2)


KEYS = ("messages", "conversations", "turns", "prompt", "input", "inputs", "body", "from", "value", "role", "content")
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ANY = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(KEYS), inner))


@given(ANY, st.sampled_from(["chat", "completions", "embeddings", "kserve"]))
def test_no_document_whatever_its_shape_breaks_the_reading(value: object, kind: str) -> None:
    for one in candidates(json.dumps(value), kind):
        if isinstance(one, Candidate):
            protocol = {"embeddings": "openai_embeddings", "kserve": "kserve_v2"}.get(kind, "openai_chat")
            workload.load(json.dumps(entries([one])[0]).encode(), "w", protocol)
