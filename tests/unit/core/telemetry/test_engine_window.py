"""Two looks at a metrics page: the growth between them, and nothing where the process began anew."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.unit.engines.support import page, text

from changectl import engines
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.core.telemetry.engine_series import CANONICAL, MetricTable, Series
from changectl.core.telemetry.engine_window import BEGAN_ANEW, Bound, percentile, window

TABLE = MetricTable({
    "queue_time": (Series("queue_seconds", "s", histogram=True),),
    "preemptions": (Series("preempted_total"),),
    "prefill_time": (Series("prefill_seconds_total", "s"),),
    "waiting": (Series("waiting"),),
    "process_start": (Series("process_start_time_seconds"),),
})  # fmt: skip
COUNTS = some.integers(0, 10**6)


def looked(body: str) -> EnginePage:
    return read_page(TABLE, page(body))


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_counters_that_grew_give_their_growth_and_one_that_fell_gives_none_at_all(
    a: int, b: int, c: int, d: int
) -> None:
    found = window(looked(f"preempted_total {a}\nprefill_seconds_total {b}\n"),
                   looked(f"preempted_total {c}\nprefill_seconds_total {d}\n"))  # fmt: skip

    if c >= a and d >= b:
        assert (found.gain("preemptions"), found.gain("prefill_time")) == (c - a, d - b)
        assert not found.restarted
    else:
        assert found.gains == {}
        assert found.restarted
        assert found.missing["preemptions"] == found.missing["prefill_time"] == BEGAN_ANEW


@given(some.lists(COUNTS, min_size=4, max_size=4), some.lists(COUNTS, min_size=4, max_size=4))
def test_no_window_ever_shrinks(before: list[int], after: list[int]) -> None:
    def body(values: list[int]) -> str:
        return (f'preempted_total{{engine="0"}} {values[0]}\npreempted_total{{engine="1"}} {values[1]}\n'
                f"queue_seconds_sum {values[2]}\nqueue_seconds_count {values[3]}\n")  # fmt: skip

    found = window(looked(body(before)), looked(body(after)))

    assert all(reading.value >= 0 and (reading.count or 0) >= 0 for reading in found.gains.values())


def test_one_of_several_engines_that_began_anew_makes_the_sum_unknown_although_it_grew() -> None:
    found = window(looked('preempted_total{engine="0"} 10\npreempted_total{engine="1"} 10\n'),
                   looked('preempted_total{engine="0"} 90\npreempted_total{engine="1"} 2\n'))  # fmt: skip

    assert found.gain("preemptions") is None
    assert found.restarted


def test_another_start_of_the_process_is_seen_although_every_counter_is_larger() -> None:
    found = window(looked("process_start_time_seconds 100\npreempted_total 1\n"),
                   looked("process_start_time_seconds 200\npreempted_total 9\n"))  # fmt: skip

    assert found.restarted
    assert found.gain("preemptions") is None


def test_what_one_of_the_pages_lacks_is_missing_with_that_pages_reason() -> None:
    found = window(looked("preempted_total 1\n"), looked("prefill_seconds_total 1\n"))

    assert found.gains == {}
    assert found.missing["preemptions"] == found.missing["prefill_time"] == "not on the metrics page"
    assert (
        window(looked("preempted_total 1\n"), read_page(TABLE, None)).missing["preemptions"].endswith("not asked for")
    )


def test_gauges_have_no_growth() -> None:
    found = window(looked("waiting 5\n"), looked("waiting 1\n"))

    assert "waiting" not in {**found.gains, **found.missing}
    assert not found.restarted


def test_a_percentile_is_bounded_by_the_edges_of_its_bucket() -> None:
    buckets = ((0.1, 90.0), (0.5, 99.0), (math.inf, 100.0))

    assert percentile(buckets, 0.5) == Bound(0.0, 0.1)
    assert percentile(buckets, 0.95) == Bound(0.1, 0.5)
    assert percentile(buckets, 1.0) == Bound(0.5, None)
    assert percentile(((math.inf, 0.0),), 0.5) is None
    with pytest.raises(ValueError, match="share"):
        percentile(buckets, 95)


@given(some.lists(some.integers(0, 50), min_size=1, max_size=8), some.floats(0.01, 1))
def test_a_percentile_lies_where_that_share_of_all_observations_is_reached(numbers: list[int], share: float) -> None:
    cumulative = [float(sum(numbers[: place + 1])) for place in range(len(numbers))]
    edges = [*map(float, range(1, len(numbers))), math.inf]
    found = percentile(tuple(zip(edges, cumulative, strict=True)), share)

    if not sum(numbers):
        assert found is None
        return
    assert found is not None
    place = edges.index(found.at_most if found.at_most is not None else math.inf)
    assert cumulative[place] >= share * sum(numbers)
    assert place == 0 or cumulative[place - 1] < share * sum(numbers) or numbers[place] > 0


def test_the_window_over_recorded_pages_holds_the_share_of_cache_hits() -> None:
    recorded = text("vllm", "metrics.txt")
    later = recorded.replace('prefix_cache_queries_total{engine="0",model_name="tiny"} 28.0',
                             'prefix_cache_queries_total{engine="0",model_name="tiny"} 128.0')  # fmt: skip
    later = later.replace('prefix_cache_hits_total{engine="0",model_name="tiny"} 0.0',
                          'prefix_cache_hits_total{engine="0",model_name="tiny"} 25.0', 1)  # fmt: skip
    table = engines.load("vllm").metric_table
    found = window(read_page(table, page(recorded)), read_page(table, page(later)))

    assert found.share("cache_hits", "cache_queries") == 0.25
    assert found.share("cache_queries", "cache_hits") is None
    document = found.to_json()
    assert set(document["gains"]) | set(document["missing"]) == {row.name for row in CANONICAL if row.kind != "gauge"}
