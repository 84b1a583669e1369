"""A way to the service that is longer by a known time: it shows in what is stamped, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

LEVELS = [{"name": "low", "streams": 2, "requests": 16}]
DELAY = 0.15


async def answer(talk: Conversation) -> None:
    await talk.head()
    for _ in range(4):
        await talk.text("a", 0.01)
    await talk.text("b", 0.01, finish="stop")
    await talk.usage(5)
    await talk.end()


def medians(result: Result) -> tuple[float, float, float]:
    """Seconds to the first token, between tokens, and to the last one."""
    assert result.status == 0
    assert [record.cls for record in result.records] == ["ok"] * 16
    found = [(one.t_first, one.t_last, one.t_sent) for one in result.records]
    first = median(a - sent for a, _, sent in found if a and sent)
    each = median((z - a) / 4 for a, z, _ in found if a and z)
    return first / 1e9, each / 1e9, median(z - sent for _, z, sent in found if z and sent) / 1e9


def test_a_known_delay_is_in_the_first_token_and_the_whole_answer_and_not_between_tokens(
    generate: Callable[..., Result],
) -> None:
    with Server(answer) as server:
        plain, delayed = (
            medians(generate(make_job(server.url, levels=LEVELS, relay={"delay": delay}))) for delay in (0.0, DELAY)
        )
        requests = [(talk.method_and_path, talk.body["prompt"]) for talk in server.seen]
    assert delayed[0] - plain[0] == pytest.approx(DELAY, abs=0.1)
    assert delayed[2] - plain[2] == pytest.approx(DELAY, abs=0.1)
    assert abs(delayed[1] - plain[1]) < DELAY / 4
    assert sorted(requests[:16]) == sorted(requests[16:])


def test_the_summary_names_the_address_that_the_service_sees(generate: Callable[..., Result]) -> None:
    with Server(answer) as server:
        assert generate(make_job(server.url, relay={"delay": 0})).summary["source"] == "127.0.0.1"


def test_a_service_that_is_not_there_is_a_failed_request_on_the_longer_way_too(
    generate: Callable[..., Result],
) -> None:
    with Server(answer) as server:
        url = server.url
    result = generate(make_job(url, relay={"delay": 0.0}))
    assert [record.ok for record in result.records] == [False]


@pytest.mark.parametrize("relay", [{"delay": -1}, {"delay": "long"}, {}, 3])
def test_a_delay_that_makes_no_sense_is_refused_before_anything_is_sent(
    generate: Callable[..., Result], relay: Any
) -> None:
    with Server(answer) as server:
        assert generate(make_job(server.url, relay=relay)).status == 2
        assert not server.seen
