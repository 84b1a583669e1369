"""The share of requests within the limits that the service promises to each of its users."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.core.measuring.test_measurement import LOW, MS, failure, record

from changectl.core.measuring import goodput as of_goodput
from changectl.core.measuring.durations import Durations
from changectl.core.measuring.goodput import latency_limits
from changectl.core.measuring.measurement import Record, Records, summarise
from changectl.core.measuring.metrics import parse_expectation, parse_guard, parse_metric

SLO = [parse_guard("ttft_user_p95", "<= 50ms"), parse_guard("tpot_p95", "<= 10ms"), parse_guard("failures", "<= 1%")]


def goodput(records: list[Record], limits: dict[str, float]) -> float | None:
    return of_goodput.goodput(Durations(Records.of(one for one in records if one.ok)), len(records), limits)


def slow(i: int) -> Record:
    """Its first token takes 60 ms."""
    return record(i, t_first=i * 100 * MS + 60 * MS)


def test_the_requests_within_every_limit_are_counted_over_all_that_were_due() -> None:
    records = [*(record(i) for i in range(7)), slow(7), failure(8), failure(9, "late")]

    assert goodput(records, latency_limits(SLO, "low")) == 0.7
    assert summarise(records, LOW, slo=SLO).levels[0].value("goodput") == 0.7


def test_a_limit_is_met_at_its_very_value() -> None:
    assert goodput([record(0)], {"ttft_user": 0.020}) == 1.0
    assert goodput([record(0)], {"ttft_user": 0.0199}) == 0.0


def test_without_a_limit_on_a_latency_there_is_no_goodput() -> None:
    assert latency_limits([parse_guard("failures", "<= 1%"), parse_guard("rps_ok", ">= 3 rps")], "low") == {}
    assert goodput([record(0)], {}) is None
    assert summarise([record(0)], LOW).levels[0].value("goodput") is None
    assert goodput([], {"ttft_user": 1.0}) is None


def test_a_limit_of_another_level_does_not_count() -> None:
    limits = [parse_guard("ttft_user_p95 at peak", "<= 50ms"), parse_guard("tpot", "<= 10ms")]

    assert latency_limits(limits, "low") == {"tpot": 0.010}
    assert latency_limits(limits, "peak") == {"ttft_user": 0.050, "tpot": 0.010}


def test_of_several_limits_on_one_latency_each_user_is_promised_the_loosest() -> None:
    limits = [parse_guard("ttft_user_p50", "<= 300ms"), parse_guard("ttft_user_p95", "<= 800ms")]

    assert latency_limits(limits, "low") == {"ttft_user": 0.8}


def test_a_good_answer_without_its_figure_leaves_it_unknown_unless_it_is_bad_anyway() -> None:
    uncounted = record(1, n_out=None)
    late_and_uncounted = record(1, n_out=None, t_first=160 * MS)

    assert goodput([record(0), uncounted], latency_limits(SLO, "low")) is None
    assert goodput([record(0), late_and_uncounted], latency_limits(SLO, "low")) == 0.5


def test_a_single_token_is_not_held_against_the_time_per_token() -> None:
    assert goodput([record(0, n_out=1, t_last=20 * MS)], latency_limits(SLO, "low")) == 1.0


def test_it_can_be_limited_and_expected_and_is_not_guarded_by_itself() -> None:
    assert str(parse_guard("goodput at peak", ">= 95%")) == "slo goodput at peak >= 95%"
    assert parse_expectation("goodput", "+5%").change == pytest.approx(0.05)
    metric = parse_metric("goodput").metric
    assert (metric.margin("interactive"), metric.margin("offline")) == (None, None)
    with pytest.raises(ValueError, match="forbid a good goodput"):
        parse_guard("goodput", "<= 95%")


@given(st.lists(st.sampled_from(["good", "slow", "failed"]), min_size=1, max_size=60))
def test_it_is_a_share_and_never_more_than_that_of_the_good_answers(kinds: list[str]) -> None:
    make = {"good": record, "slow": slow, "failed": failure}
    records = [make[kind](i) for i, kind in enumerate(kinds)]

    assert goodput(records, latency_limits(SLO, "low")) == kinds.count("good") / len(kinds)
