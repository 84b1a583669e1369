"""Conversations: each answer becomes part of what is asked next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.adapters.loadgen.deck import Deck
from changectl.adapters.loadgen.job import Item, Level
from changectl.adapters.loadgen.open_level import OpenRun
from changectl.adapters.loadgen.turns import planned
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import summarise
from changectl.core.units import LevelLoad

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


class Service:
    """Fulfils the client's part for a level: every answer takes so many seconds of a clock that nobody waits for."""

    stopping = False

    def __init__(self, seconds: float, failing_turn: int | None = None) -> None:
        self._seconds, self._failing = seconds, failing_turn
        self.asked: list[Item] = []

    async def record(
        self, level: Level, item: Item, place: dict[str, Any], t_planned: int
    ) -> tuple[dict[str, Any], str]:
        self.asked.append(item)
        cls = "http_5xx" if item.turn == self._failing else "ok"
        return self._noted(item, place, t_planned, cls, t_planned + int(self._seconds * 1e9)), f"to {item.name}"

    def not_sent(
        self, level: Level, item: Item, place: dict[str, Any], t_planned: int, why: str | None
    ) -> dict[str, Any]:
        return {**self._noted(item, place, t_planned, "not_sent", None), "error": why}

    def _noted(self, item: Item, place: dict[str, Any], t_planned: int, cls: str, t_end: int | None) -> dict[str, Any]:
        return {**place, "prompt": item.name, "turn": item.turn, "cls": cls, "t_planned": t_planned, "t_end": t_end}


#: A turn is due a second or more after the one before it; nobody waits for these seconds.
SCHEDULE = [number * 250_000_000 for number in range(40)]


class Rushed(OpenRun):
    """Its clock stands at zero, and every moment is now."""

    async def _until(self, moment: int) -> None:
        await asyncio.sleep(0)

    async def run(self) -> None:
        await self._drive()
        self.records.sort(key=lambda record: int(record["i"]))


def offered(service: Service, deadline: float = 60.0) -> list[dict[str, Any]]:
    talk = Item("c", {"messages": [{"role": "user", "content": "one?"}]}, 4, turn=1, follow_ups=("two?", "three?"))
    level = Level("peak", None, 10.0, len(SCHEDULE))
    run = Rushed(level, [talk, Item("a", {"prompt": "alone"}, 4)], service, 0, SCHEDULE, deadline)
    asyncio.run(run.run())
    assert run.whole
    return run.records


def test_an_open_level_offers_a_slow_service_the_very_requests_that_it_offers_a_fast_one() -> None:
    fast, slow = (offered(Service(seconds)) for seconds in (0.01, 7.0))

    assert [(one["prompt"], one["round"], one["cls"]) for one in fast] == [
        (one["prompt"], one["round"], one["cls"]) for one in slow
    ]
    assert min(Counter(one["prompt"] for one in fast)[f"c#{turn}"] for turn in (1, 2, 3)) > 5


def test_a_turn_is_due_when_the_schedule_says_and_not_before_the_answer_that_is_part_of_it_has_come() -> None:
    assert [one["t_planned"] for one in offered(Service(0.01))] == SCHEDULE
    slow = {(one["round"], one["turn"]): one for one in offered(Service(7.0)) if one["turn"]}

    waited = [(one, slow[talk, turn - 1]) for (talk, turn), one in slow.items() if turn > 1]
    assert len(waited) > 10
    assert all(one["t_planned"] == before["t_end"] for one, before in waited)


def test_a_turn_in_an_open_level_holds_the_answers_before_it() -> None:
    service = Service(0.01)
    offered(service)

    last = next(item for item in service.asked if item.turn == 3)
    said = [message["content"] for message in last.content["messages"]]
    assert said == ["one?", "to c#1", "two?", "to c#2", "three?"]


@pytest.mark.parametrize(
    ("service", "deadline", "why"),
    [
        (Service(0.01, failing_turn=2), 60.0, "the turn before it got no good answer"),
        (Service(5.0), 6.0, "the answer before it came later than a request may take"),
    ],
)
def test_what_was_due_and_could_not_be_sent_is_recorded_with_its_reason(
    service: Service, deadline: float, why: str
) -> None:
    third = [one for one in offered(service, deadline) if one["turn"] == 3]

    assert third
    assert {(one["cls"], one["error"], one["t_end"]) for one in third} == {("not_sent", why, None)}
    assert not [item for item in service.asked if item.turn == 3]


def test_turns_that_could_not_be_sent_are_no_failures_and_no_lateness_of_the_sender(generate: Generate) -> None:
    async def second_fails(talk: Conversation) -> None:
        if len(messages(talk)) > 2:
            await talk.status("500 Internal Server Error", b"{}")
        else:
            await numbered(talk)

    job = make_job("", protocol="openai_chat", workload=[TALK, OTHER], deadline=30.0)
    job["levels"] = [{"name": "peak", "arrivals": "poisson", "requests": 16, "seconds": 0.5}]
    with Server(second_fails) as server:
        result = generate({**job, "endpoint": server.url})

    level = summarise(result.records, {"peak": LevelSize(LevelLoad(rate=32), 0.5)}).levels[0]
    third = sum(record.turn == 3 for record in result.records)
    assert (result.status, len(result.records)) == (0, 16)
    assert third >= 1
    assert (level.not_sent, level.n, len(server.seen)) == (third, 16 - third, 16 - third)
    assert set(level.failures) == {"http_5xx"}


TALKS = st.lists(st.integers(0, 4), min_size=1, max_size=6)
MOMENTS = st.lists(st.integers(0, 4 * 10**9), min_size=1, max_size=30).map(sorted)


@given(TALKS, MOMENTS)
def test_every_turn_is_planned_after_the_one_before_it_and_a_pause(turns: list[int], schedule: list[int]) -> None:
    talks = [Item(f"{n}", {"messages": []}, 1, turn=1, follow_ups=("more?",) * more) for n, more in enumerate(turns)]

    slots = planned(schedule, talks, 4.0)

    assert len(slots) == len(schedule)
    begun = [(one.round, int(one.item.id)) for one in slots if one.after is None]
    assert begun == [divmod(number, len(talks)) for number in range(len(begun))]
    for moment, one in zip(schedule, slots, strict=True):
        if one.after is not None:
            before = slots[one.after]
            assert (one.item.id, one.round) == (before.item.id, before.round)
            assert one.item.turn == (before.item.turn or 0) + 1
            assert moment - schedule[one.after] >= 400_000_000
    befores = [one.after for one in slots if one.after is not None]
    assert len(set(befores)) == len(befores)


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
