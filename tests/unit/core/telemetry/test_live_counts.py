"""Shares of live requests, from the pages that engines really gave."""

from __future__ import annotations

from tests.unit.engines.support import page, text

from changectl import engines
from changectl.core.measuring.metrics import parse_guard
from changectl.core.measuring.proportions import Count
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.core.telemetry.live_counts import counts, over


def recorded(engine: str) -> EnginePage:
    return read_page(engines.load(engine).metric_table, page(text(engine, "metrics.txt")), "tiny")


def test_vllm_counts_failures_preemptions_and_what_was_slow() -> None:
    found = counts(recorded("vllm"), [parse_guard("ttft_user_p95", "<= 800ms")])
    assert set(found) == {"failures", "preemptions", "given_up", "ttft_user_p95"}
    assert found["ttft_user_p95"] == Count(0, 4)


def test_what_the_server_refused_is_among_the_failures_and_what_the_engine_ended_is_counted_once() -> None:
    body = """\
vllm:request_success_total{finished_reason="stop",model_name="tiny"} 90
vllm:request_success_total{finished_reason="error",model_name="tiny"} 4
http_requests_total{handler="/v1/completions",status="2xx"} 90
http_requests_total{handler="/v1/completions",status="5xx"} 10
"""
    found = counts(read_page(engines.load("vllm").metric_table, page(body), "tiny"), [])
    assert found["failures"] == Count(10, 100)


def test_llamacpp_counts_none_of_them() -> None:
    assert counts(recorded("llamacpp"), [parse_guard("ttft_user_p95", "<= 800ms")]) == {}


def test_only_what_is_beyond_the_next_edge_was_surely_slower_than_a_limit() -> None:
    buckets = ((0.5, 6.0), (1.0, 9.0), (float("inf"), 10.0))
    assert over(buckets, 0.5) == Count(4, 10)
    assert over(buckets, 0.8) == Count(1, 10)
    assert over(buckets, 1.5) is None
    assert over((), 0.5) is None
