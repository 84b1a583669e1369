"""Stuck loading is told from slow loading by what is read and computed; nobody is called stuck for lack of figures."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.unit.workflow.test_ready import failed
from tests.workflow.stage import Stage

from changectl.core.observed import StatusProcess
from changectl.workflow.loading import Loading

GB = 10**9


def never_ready(loads: Any) -> Stage:
    stage = Stage()
    stage.host.load_seconds = 10_000.0
    stage.host.loads = loads
    return stage


def test_a_start_that_reads_nothing_and_computes_nothing_is_stuck() -> None:
    stage = never_ready(lambda seconds: {"read_bytes": 3 * GB, "rss_bytes": GB, "cpu_seconds": min(seconds, 5) / 2})
    result = failed(stage, 60.0)
    assert result.reason == "stuck"
    assert "within 60 s (the test); it is stuck: it has read nothing and used no processor time for 5" in result.text
    assert any("nothing read and no processor time used for 30 s" in line for line in stage.reporter.waits)


@pytest.mark.parametrize(
    "loads",
    [
        lambda seconds: {"read_bytes": int(seconds * GB / 100), "rss_bytes": GB, "cpu_seconds": 1.0},  # a slow disk
        lambda seconds: {"read_bytes": GB, "rss_bytes": GB, "cpu_seconds": seconds / 20},  # compiles, or quantizes
        lambda seconds: {"read_bytes": GB, "rss_bytes": int(seconds * 10**7), "cpu_seconds": 1.0},  # from a page cache
    ],
)
def test_a_start_that_gets_on_only_was_too_slow(loads: Any) -> None:
    result = failed(never_ready(loads), 60.0)
    assert result.reason == "deadline"
    assert "it was still loading: " in result.text
    assert "stuck" not in result.text


def test_a_slow_start_says_how_much_it_read_lately() -> None:
    result = failed(never_ready(lambda seconds: {"read_bytes": int(seconds * GB / 10), "cpu_seconds": seconds}), 60.0)
    assert re.search(r"it was still loading: 600\d MB read, 9\d\d MB of them in the last 10 s", result.text)


def test_what_waits_with_now_and_then_a_tick_is_stuck_all_the_same() -> None:
    loads = lambda seconds: {"read_bytes": GB, "cpu_seconds": round(seconds * 0.004, 2)}  # noqa: E731
    assert failed(never_ready(loads), 60.0).reason == "stuck"


@pytest.mark.parametrize("figures", [{}, {"read_bytes": GB}, {"read_bytes": GB, "rss_bytes": GB}])
def test_without_processor_time_nobody_is_called_stuck(figures: dict[str, int]) -> None:
    assert failed(never_ready(lambda seconds: figures), 60.0).reason == "deadline"


def test_one_that_answers_requests_and_does_not_serve_is_not_called_stuck() -> None:
    stage = never_ready(lambda seconds: {"read_bytes": GB, "rss_bytes": GB, "cpu_seconds": 1.0})
    stage.host.load_seconds = 0.0
    stage.host.metrics = lambda host: "llamacpp:tokens_predicted_total 7\n"
    result = failed(stage, 60.0)
    assert result.reason == "deadline"
    assert result.text.endswith("(the test); what it answers: answered, but its token counter stands still at 7")


def test_a_new_process_begins_anew() -> None:
    loading = Loading()
    for now, pid in [(0.0, 1), (20.0, 1), (21.0, 2), (25.0, 2)]:
        loading.see(now, StatusProcess(pid=pid, start_ticks=pid, read_bytes=7, cpu_seconds=1.0))
    assert loading.still_for(25.0) is None
    assert loading.still_for(31.0) == pytest.approx(10.0)
    loading.see(32.0, None)
    assert (loading.still_for(50.0), loading.told(50.0)) == (None, "")
