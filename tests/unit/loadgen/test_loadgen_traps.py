"""Two phases against a server that would mislead, judged: what looks like a gain or like nothing, and is neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, as_if_idle, make_job
from tests.unit.loadgen.server import Conversation, Script, Server

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.judging.verdict import judge_quick
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.measurement import summarise
from changectl.core.measuring.metrics import parse_expectation
from changectl.core.units import LevelLoad

Generate = Callable[..., Result]
STREAMS = 8


def answering(tokens: int, ttft: float = 0.03, tpot: float = 0.002) -> Script:
    """A server with a pace, that finishes by itself when it has said so many tokens."""

    async def script(talk: Conversation) -> None:
        await talk.head()
        for number in range(tokens):
            await talk.text("x", tpot if number else ttft)
        await talk.text("", finish="length")
        await talk.usage(tokens)
        await talk.end()

    return script


def either(choose: Callable[[int], bool], first: Script, second: Script) -> Script:
    """The first script for requests whose number is chosen, the second one for the others."""

    async def script(talk: Conversation) -> None:
        await (first if choose(talk.number) else second)(talk)

    return script


async def refuse(talk: Conversation) -> None:
    await talk.status("503 Service Unavailable", b'{"error": {"message": "too busy"}}')


async def say_nothing(talk: Conversation) -> None:
    await talk.head()
    await talk.end()


def measure(generate: Generate, server: Server, requests: int = 40, **job: Any) -> Measurement:
    """One phase of a closed level."""
    level = {"name": "normal", "streams": STREAMS, "requests": requests}
    result = generate(make_job(server.url, levels=[level], deadline=10.0, stagger=0.002, **job))
    assert result.status == 0
    size = LevelSize(LevelLoad(streams=STREAMS), requests=requests)
    return as_if_idle(summarise(result.records, {"normal": size}))


def only(measurement: Measurement) -> LevelMeasurement:
    (level,) = measurement.levels
    return level


def judged(generate: Generate, before: Script, after: Script, **given: Any) -> Judgement:
    """What a quick trial says of the two."""
    with Server(before) as old, Server(after) as new:
        return judge_quick(measure(generate, old, salt="A"), measure(generate, new, salt="B"), **given)


def test_empty_answers_do_not_pull_the_median_to_zero(generate: Generate) -> None:
    """Three of five end without content: the median of all that were asked has no bound, the mean is of the rest."""
    with Server(either(lambda number: number % 5 < 3, say_nothing, answering(4))) as server:
        level = only(measure(generate, server))

    assert level.failures == {"empty": 24}
    assert level.value("ttft_user", "p50") == float("inf")
    mean = level.value("ttft_user", "mean")
    assert mean is not None
    assert 0.025 < mean < 1


def test_shedding_a_third_of_the_load_and_being_faster_for_the_rest_is_regressed(generate: Generate) -> None:
    shedding = either(lambda number: number % 3 == 0, refuse, answering(4, ttft=0.01))
    judgement = judged(generate, answering(4, ttft=0.12), shedding, expect=[parse_expectation("ttft_user", "-20%")])

    assert judgement.verdict is Verdict.REGRESSED
    assert any("failures" in reason.text for reason in judgement.reasons)


def test_a_fifth_of_requests_that_fail_fast_is_no_gain_in_latency_or_throughput(generate: Generate) -> None:
    with Server(either(lambda number: number % 5 == 0, refuse, answering(4))) as server:
        level = only(measure(generate, server))

    assert level.failure_share == 0.2
    assert level.window is not None
    assert level.rps_ok == pytest.approx(32 / level.window), "what failed is no throughput"
    assert (level.value("ttft_user", "mean") or 0) > 0.029, "and no quick answer"


def test_answers_that_stop_a_fifth_earlier_are_not_faster_ones(generate: Generate) -> None:
    judgement = judged(generate, answering(20), answering(16), expect=[parse_expectation("e2e_user", "-10%")])

    compared = {row.place: row.state for row in judgement.rows if row.state != "not judged"}
    assert {compared[f"{name} at normal"] for name in ("e2e_user_p50", "rps_ok", "out_tok_s")} == {"unequal work"}
    assert compared["tpot_p50 at normal"] != "unequal work", "what counts per token is the same work"


def test_a_server_that_caps_answers_at_one_token_is_no_gain(generate: Generate) -> None:
    judgement = judged(generate, answering(12), answering(1), expect=[parse_expectation("rps_ok", "+10%")])

    assert judgement.verdict in (Verdict.INVALID, Verdict.INCONCLUSIVE)


def caching() -> Script:
    """Knows every prompt that it saw, whoever asked, and answers it at once the next time."""
    known: set[str] = set()

    async def script(talk: Conversation) -> None:
        prompt = str(talk.body["prompt"])
        seen, _ = prompt in known, known.add(prompt)
        await answering(4, ttft=0.002 if seen else 0.15)(talk)

    return script


def test_a_cache_that_an_earlier_phase_filled_makes_no_later_one_faster(generate: Generate) -> None:
    with Server(caching()) as server:
        cold, warm = (only(measure(generate, server, salt=salt)) for salt in ("A1", "B1"))
        again = only(measure(generate, server, salt="A1"))

    for level in (cold, warm):
        assert (level.value("ttft_user", "p50") or 0) > 0.145
    assert (again.value("ttft_user", "p50") or 1) < 0.145, "this server does have such a cache"


def test_a_cache_is_got_round_by_new_prompts_and_never_by_asking_the_server_to_reset_it(generate: Generate) -> None:
    with Server(answering(2)) as server:
        measure(generate, server, salt="A1")
        measure(generate, server, salt="B1")

    assert {talk.method_and_path for talk in server.seen} == {"POST /v1/completions HTTP/1.1"}


def test_what_was_sent_is_what_came_in_and_what_was_answered_or_failed(generate: Generate) -> None:
    """All prompts differ, from each other and over levels and phases, and nobody's answer gets lost on the way."""

    async def hang_up(talk: Conversation) -> None:
        await talk.head()

    levels = [{"name": name, "streams": 4, "requests": 30} for name in ("low", "peak")]
    with Server(either(lambda number: number % 10 == 7, hang_up, answering(2))) as server:
        results = [generate(make_job(server.url, levels=levels, salt=salt)) for salt in ("A1", "B1")]

    assert len(server.seen) == 120
    assert len({str(talk.body["prompt"]) for talk in server.seen}) == 120
    for result in results:
        assert result.summary["sent"] == result.summary["recorded"] == len(result.records) == 60
    counts = [sum(record.ok is good for result in results for record in result.records) for good in (True, False)]
    assert counts == [108, 12]


def test_a_slow_beginning_after_every_start_is_left_to_the_warm_up(generate: Generate) -> None:
    slow_at_first = either(lambda number: number < 8, answering(4, ttft=0.3), answering(4, ttft=0.03))
    with Server(slow_at_first) as server:
        level = only(measure(generate, server, warmup={"requests": 8, "streams": 4}))

    assert (level.n, level.ok) == (40, 40)
    assert (level.value("ttft_user", "p95") or level.value("ttft_user", "mean") or 1) < 0.25


@pytest.mark.parametrize("streams", [1, 5])
def test_one_stream_more_or_less_is_seen_by_the_servers_own_count(generate: Generate, streams: int) -> None:
    with Server(answering(3)) as server:
        generate(make_job(server.url, levels=[{"name": "low", "streams": streams, "requests": 20}]))

    assert server.most_at_once == streams
