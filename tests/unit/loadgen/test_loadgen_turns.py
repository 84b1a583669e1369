"""Conversations: each answer becomes part of what is asked next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.adapters.loadgen.deck import Deck
from changectl.adapters.loadgen.job import Item

Generate = Callable[..., Result]
TALK = {"id": "c", "system": "Be brief.", "turns": ["one?", "two?", "three?"], "max_tokens": 4}
OTHER = {"id": "a", "prompt": "alone", "max_tokens": 4}


def chat_job(url: str, *workload: Any, streams: int = 1, requests: int) -> dict[str, Any]:
    levels = [{"name": "low", "streams": streams, "requests": requests}]
    return make_job(url, protocol="openai_chat", workload=list(workload), levels=levels)


def messages(talk: Conversation) -> list[dict[str, str]]:
    found = talk.body["messages"]
    assert isinstance(found, list)
    return found


async def numbered(talk: Conversation) -> None:
    """Answers `answer N`, N being the turn, after a thought that is no part of it."""
    turn = sum(message["role"] == "user" for message in messages(talk))
    await talk.head()
    await talk.delta({"reasoning_content": "let me see"})
    await talk.delta({"content": "answer "})
    await talk.delta({"content": str(turn)}, finish="stop")
    await talk.usage(4)
    await talk.end()


def test_each_turn_holds_everything_that_was_said_before(generate: Generate) -> None:
    with Server(numbered) as server:
        result = generate(chat_job(server.url, TALK, requests=3))

    last = messages(server.seen[2])
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in last[1:]] == ["one?", "answer 1", "two?", "answer 2", "three?"]
    assert [(record.prompt, record.turn, record.cls) for record in result.records] == [
        ("c#1", 1, "ok"), ("c#2", 2, "ok"), ("c#3", 3, "ok"),
    ]  # fmt: skip


def test_the_words_that_make_a_conversation_new_stay_the_same_through_its_turns(generate: Generate) -> None:
    with Server(numbered) as server:
        generate(chat_job(server.url, TALK, requests=6))

    starts = [messages(talk)[0]["content"] for talk in server.seen]
    assert len(set(starts[:3])) == len(set(starts[3:])) == 1
    assert starts[0] != starts[3]


def test_a_stream_goes_on_with_its_own_conversation_before_it_takes_something_new(generate: Generate) -> None:
    with Server(numbered) as server:
        result = generate(chat_job(server.url, TALK, OTHER, streams=2, requests=8))

    for conversation in (0, 1):
        own = [one for one in result.records if one.prompt.startswith("c#") and one.round == conversation]
        assert [record.turn for record in own] == sorted(record.turn or 0 for record in own)
        assert len({record.stream for record in own}) == 1
        planned = [record.t_planned for record in own[1:]]
        assert planned == [record.t_end for record in own[:-1]]
    assert [record.i for record in result.records] == list(range(8))


def test_after_a_failed_turn_the_conversation_is_over(generate: Generate) -> None:
    async def second_fails(talk: Conversation) -> None:
        if len(messages(talk)) > 2:
            await talk.status("500 Internal Server Error", b"{}")
        else:
            await numbered(talk)

    with Server(second_fails) as server:
        result = generate(chat_job(server.url, TALK, OTHER, requests=4))

    assert [(record.prompt, record.cls) for record in result.records] == [
        ("c#1", "ok"), ("c#2", "http_5xx"), ("a", "ok"), ("c#1", "ok"),
    ]  # fmt: skip


def test_an_open_level_sends_as_many_requests_as_its_rate_says_whatever_they_are(generate: Generate) -> None:
    with Server(numbered) as server:
        job = make_job(server.url, protocol="openai_chat", workload=[TALK, OTHER])
        job["levels"] = [{"name": "peak", "arrivals": "poisson", "requests": 12, "seconds": 0.6}]
        result = generate(job)

    assert (result.status, len(result.records)) == (0, 12)
    by_turn = {turn: [one.prompt for one in result.records].count(f"c#{turn}") for turn in (1, 2, 3)}
    assert by_turn[1] >= by_turn[2] >= by_turn[3] >= 1


def test_the_deck_goes_round_and_round() -> None:
    deck = Deck([Item(name, {"prompt": name}, 1) for name in "ab"])

    dealt = [deck.take() for _ in range(4)]

    assert [(item.id, number) for item, number in dealt] == [("a", 0), ("b", 0), ("a", 1), ("b", 1)]


def test_an_answer_without_the_expected_text_is_a_failure_of_its_own(generate: Generate) -> None:
    right = {"id": "right", "prompt": "x", "max_tokens": 4, "expect": {"contains": "ANSWER\n 1"}}
    wrong = {"id": "wrong", "prompt": "x", "max_tokens": 4, "expect": {"contains": "Paris"}}
    with Server(numbered) as server:
        result = generate(chat_job(server.url, right, wrong, requests=2))

    assert [(record.prompt, record.cls) for record in result.records] == [("right", "ok"), ("wrong", "unexpected")]
    assert result.records[1].error == 'the answer does not contain "Paris"'
    assert result.records[1].text is None
