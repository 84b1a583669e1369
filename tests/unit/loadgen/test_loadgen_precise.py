"""A level that may end before its time: what the packed program does, and what it goes by."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from statistics import mean, stdev
from typing import Any

import pytest
from tests.unit.loadgen.harness import Result, make_job
from tests.unit.loadgen.server import Conversation, Server

from changectl.adapters.loadgen.enough import LATENCIES, RATES, STATISTICS, Enough
from changectl.adapters.loadgen.precise import Precision, duration, ratio_error
from changectl.core.measuring import catalogue
from changectl.core.measuring.durations import DURATIONS
from changectl.core.measuring.records import Record

Generate = Callable[..., Result]
WORKLOAD = [{"id": name, "prompt": name, "max_tokens": 4} for name in "abc"]


def answering(pause: Callable[[int], float]) -> Callable[[Conversation], Any]:
    """A server that answers request number N after so many seconds."""

    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.text("a", pause(talk.number), finish="stop")
        await talk.usage(2)
        await talk.end()

    return script


def timed(seconds: float, requests: int, errors: Mapping[str, float]) -> dict[str, Any]:
    enough = {"requests": requests, "errors": dict(errors)}
    return {"name": "low", "streams": 2, "seconds": seconds, "enough": enough}


def test_a_steady_server_s_level_ends_where_a_round_does_and_says_when(generate: Generate) -> None:
    errors = {"e2e_user_p50": 0.5, "e2e_user_mean": 0.5, "rps_ok": 0.5, "out_tok_s": 0.5}
    with Server(answering(lambda _: 0.01)) as server:
        result = generate(make_job(server.url, workload=WORKLOAD, levels=[timed(20.0, 60, errors)]))

    assert (result.status, result.summary["whole"]) == (0, True)
    assert 0 < result.summary["ended"]["low"] < 20
    rounds = [record.round for record in result.records]
    assert all(rounds.count(number) == len(WORKLOAD) for number in set(rounds)), "no pass over the workload is cut"
    assert len(rounds) >= 60
    assert all(record.ok for record in result.records), "what was under way is answered"
    last = max(record.t_planned for record in result.records) - result.records[0].t_planned
    assert last / 1e9 <= result.summary["ended"]["low"]


def test_a_server_that_becomes_slower_keeps_its_level_going_for_all_of_its_time(generate: Generate) -> None:
    with Server(answering(lambda number: 0.002 + number * 0.0005)) as server:
        level = timed(1.5, 20, {"e2e_user_p50": 0.02, "rps_ok": 0.02})
        result = generate(make_job(server.url, workload=WORKLOAD, levels=[level]))

    assert result.summary["ended"] == {}
    assert (result.records[-1].t_planned - result.records[0].t_planned) / 1e9 > 1.0


def test_conversations_that_have_begun_are_not_cut(generate: Generate) -> None:
    single = {"id": "a", "messages": [{"role": "user", "content": "x"}], "max_tokens": 4}
    talks = {"id": "talk", "turns": ["one", "two", "three"], "max_tokens": 4}

    async def script(talk: Conversation) -> None:
        await talk.head()
        await talk.delta({"content": "a"}, 0.01, finish="stop")
        await talk.usage(2)
        await talk.end()

    with Server(script) as server:
        job = make_job(
            server.url, protocol="openai_chat", workload=[single, talks],
            levels=[timed(20.0, 60, {"e2e_user_p50": 0.5})],
        )  # fmt: skip
        result = generate(job)

    assert result.summary["ended"]["low"] < 20
    turns = [record.turn for record in result.records if record.turn is not None]
    assert turns.count(1) == turns.count(2) == turns.count(3) >= 10


@pytest.mark.parametrize(
    ("level", "words"),
    [
        ({"name": "a", "streams": 1, "requests": 9, "enough": {"requests": 1, "errors": {"rps_ok": 0.1}}}, "no time"),
        ({"name": "a", "arrivals": "poisson", "seconds": 1.0, "requests": 9, "enough": {}}, "another load"),
        (timed(1.0, 1, {"goodput": 0.1}), '"goodput"'),
        (timed(1.0, 1, {"ttft_user_p50": -0.1}), "below zero"),
        (timed(1.0, 0, {"rps_ok": 0.1}), "at least 1"),
        (timed(1.0, 1, {}), "no figure"),
    ],
)
def test_a_job_whose_precision_makes_no_sense_is_refused(generate: Generate, level: Any, words: str) -> None:
    result = generate(make_job("http://127.0.0.1:1", levels=[level]))
    assert result.status == 2
    assert words in result.notes[-1]["error"]


def test_the_generator_knows_the_figures_that_the_controller_judges() -> None:
    assert LATENCIES == DURATIONS
    assert STATISTICS == catalogue.STATISTICS
    assert set(RATES) == {"rps_ok", "out_tok_s"}


def test_it_computes_durations_as_the_controller_does() -> None:
    source = random.Random(3)

    def maybe(*values: int) -> int | None:
        return source.choice([None, *values])

    for _ in range(60):
        record = Record(
            0, "low", 0, "p", 0, 0, "ok", t_sent=5, t_first=maybe(50, 70), t_first_output=maybe(60),
            t_last=maybe(70, 90), n_out=maybe(0, 1, 2, 9), max_gap_ns=maybe(9),
        )  # fmt: skip
        for metric in LATENCIES:
            mine, controllers = duration(record._asdict(), metric), record.duration(metric)
            assert (mine is None) == (controllers is None)
            assert mine is None or mine / 1e9 == pytest.approx(controllers)


def test_the_error_of_a_ratio_is_that_of_what_it_leaves_over_in_the_batches() -> None:
    tops, bottoms = [10.0, 12.0, 11.0, 9.0], [5.0, 5.5, 5.0, 5.0]
    ratio = sum(tops) / sum(bottoms)
    rest = [top - ratio * bottom for top, bottom in zip(tops, bottoms, strict=True)]
    expected = stdev(rest, 0.0) / math.sqrt(4) / mean(bottoms) / ratio
    assert ratio_error(tops, bottoms) == pytest.approx(expected)
    assert ratio_error([0.0, 0.0], [1.0, 1.0]) == math.inf


def fed(values: list[float], errors: Mapping[str, float], cls: str = "ok", entries: int = 3) -> Precision:
    """So many requests, one after the other, of these durations."""
    level, now = Precision(Enough(30, errors), entries), 0
    for number, value in enumerate(values):
        level.add(answer(now, now + int(value * 1e6), cls), number // entries, last=True)
        now += int(value * 1e6)
    return level


def answer(begin: int, end: int, cls: str = "ok") -> dict[str, Any]:
    stamps = {"t_planned": begin, "t_sent": begin, "t_first": end, "t_first_output": end, "t_last": end, "t_end": end}
    return {**stamps, "n_out": 2, "max_gap_ns": None, "cls": cls}


def test_too_few_rounds_or_answers_are_never_precise() -> None:
    errors = {"e2e_user_p50": 0.1}
    assert fed([10.0] * 60, errors).reached()
    assert not fed([10.0] * 27, errors).reached(), "nine rounds"
    assert not fed([10.0] * 20, errors, entries=2).reached(), "ten rounds of two"
    assert not fed([10.0] * 60, errors, cls="timeout").reached()


def test_every_figure_has_to_be_precise_and_one_that_no_answer_has_is_not_waited_for() -> None:
    values = [10.0 + index % 7 for index in range(300)]
    assert fed(values, {"e2e_user_mean": 0.1}).reached()
    assert not fed(values, {"e2e_user_mean": 0.1, "rps_ok": 1e-9}).reached()
    assert fed(values, {"e2e_user_mean": 0.1, "icl_max_p50": 1e-9}).reached()
    assert not fed(values, {"icl_max_p50": 1.0}).reached(), "nothing was judged at all"


def test_a_tail_of_a_few_slow_answers_is_not_precise_where_the_median_is() -> None:
    source = random.Random(5)
    values = [30.0 if source.random() < 0.05 else 10.0 + source.random() / 10 for _ in range(600)]
    assert fed(values, {"e2e_user_p50": 0.01}).reached()
    assert not fed(values, {"e2e_user_p95": 0.05}).reached()


def test_answers_that_fail_now_and_then_leave_a_percentile_beyond_them_unknown() -> None:
    level, now = Precision(Enough(30, {"e2e_user_p95": 0.5}), 3), 0
    for number in range(300):
        level.add(answer(now, now + 10, "ok" if number % 15 else "timeout"), number // 3, last=True)
        now += 10
    assert not level.reached()
