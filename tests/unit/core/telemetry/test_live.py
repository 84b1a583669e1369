"""Two looks at a live service: what happened in between, and nothing where it was restarted."""

from __future__ import annotations

from typing import Any

from tests.unit.engines.support import page

from changectl import engines
from changectl.core.telemetry.engine_page import read_page
from changectl.core.telemetry.live import LiveSample, live_window

PAGE = """\
vllm:num_requests_waiting{model_name="m"} 2
vllm:num_preemptions_total{model_name="m"} %d
vllm:request_success_total{finished_reason="stop",model_name="m"} %d
vllm:request_success_total{finished_reason="error",model_name="m"} %d
vllm:time_to_first_token_seconds_bucket{le="0.5",model_name="m"} %d
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="m"} %d
vllm:time_to_first_token_seconds_sum{model_name="m"} 1
vllm:time_to_first_token_seconds_count{model_name="m"} %d
"""


def sample(at: float, ended: int, errors: int = 0, pid: int = 7, body: str | None = None, **look: Any) -> LiveSample:
    text = PAGE % (ended // 10, ended, errors, ended, ended, ended) if body is None else body
    engine = read_page(engines.load("vllm").metric_table, page(text), "m")
    return LiveSample(at, (pid, 1), engine, {"at": at, "clock": at, "process": [pid, 1], **look})


def test_a_window_tells_errors_answers_preemptions_latency_and_memory() -> None:
    found = live_window(sample(0, 100, rss=1000), sample(10, 200, 3, rss=1500))

    assert (found.answered, found.errors, found.preemptions) == (100, 3, 10)
    assert found.memory_growth == 500
    bound = found.latency("ttft", 0.95)
    assert bound is not None
    assert (bound.at_least, bound.at_most) == (0.0, 0.5)
    assert not found.restarted


def test_errors_are_the_larger_of_what_the_engine_and_what_the_server_in_front_of_it_counted() -> None:
    def refused(count: int) -> str:
        return PAGE % (1, 9, 2, 9, 9, 9) + f'http_requests_total{{handler="/v1/completions",status="5xx"}} {count}\n'

    earlier, later = sample(0, 0, body=refused(0)), sample(10, 0, body=refused(7))
    assert (earlier.errors, later.errors, live_window(earlier, later).errors) == (2, 7, 7)


def test_after_a_restart_nothing_is_known_although_the_counters_are_larger() -> None:
    found = live_window(sample(0, 10, rss=1000), sample(10, 200, pid=8, rss=9000))

    assert found.restarted
    assert (found.answered, found.errors, found.latency("ttft"), found.memory_growth) == (None, None, None, None)
    assert found.host.counts["restarts"] == 1


def test_an_engine_that_does_not_answer_leaves_everything_missing() -> None:
    now = sample(0, 0, body="")

    assert (now.waiting, now.kv_use, now.errors, now.service_memory) == (None, None, None, None)
    assert live_window(now, sample(10, 5)).errors is None
