"""Metrics pages by canonical names: in one unit, of our model alone, and missing where there is nothing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.unit.engines.support import page, text

from changectl import engines
from changectl.core.engine import Page
from changectl.core.telemetry.engine_page import EnginePage, gauges_of, read_page
from changectl.core.telemetry.engine_series import BY_NAME, CANONICAL, TO_CANONICAL, MetricTable, Series

VLLM, LLAMA = engines.load("vllm").metric_table, engines.load("llamacpp").metric_table


def read(body: str, *series: Series, name: str = "waiting", label: str = "", model: str | None = None) -> EnginePage:
    return read_page(MetricTable({name: series}, label), page(body), model)


def test_the_recorded_page_of_vllm_is_read_by_canonical_names() -> None:
    found = read_page(VLLM, page(text("vllm", "metrics.txt")), "tiny")

    assert (found.value("running"), found.value("waiting"), found.value("kv_use")) == (3, 5, 0.8)
    assert (found.value("requests_failed"), found.value("preemptions")) == (0, 0)
    ttft = found.readings["ttft"]
    assert (ttft.count, round(ttft.mean or 0, 4)) == (4, 0.037)
    assert ttft.buckets[-1] == (math.inf, 4)
    assert found.missing["postprocess_time"] == "not exposed"


def test_the_recorded_page_of_llamacpp_has_times_without_a_count_and_no_queue_time() -> None:
    found = read_page(LLAMA, page(text("llamacpp", "metrics.txt")))

    assert found.readings["prefill_time"].value == 0.003521
    assert found.readings["prefill_time"].count is None
    assert found.value("cache_queries") == 9
    assert found.missing["queue_time"] == "not exposed"
    assert found.missing["kv_use"] == "not on the metrics page"


@pytest.mark.parametrize("table", [VLLM, LLAMA])
@pytest.mark.parametrize("answer", [None, Page(error="refused"), page("", 501), page("<html>"), page("")])
def test_without_a_page_everything_is_missing_with_a_reason_and_nothing_is_zero(
    table: MetricTable, answer: Page | None
) -> None:
    found = read_page(table, answer)

    assert found.readings == {}
    assert set(found.missing) == set(BY_NAME)
    assert all(found.missing.values())


@given(some.dictionaries(some.sampled_from(["a", "a_total", "b", "c", "d"]), some.floats(), max_size=5))
def test_every_name_is_either_read_or_missing_whatever_stands_on_the_page(values: dict[str, float]) -> None:
    table = MetricTable({"waiting": (Series("a"), Series("b")), "kv_use": (Series("c"),), "ttft": (Series("d"),)})
    found = read_page(table, page("".join(f"{name} {value!r}\n" for name, value in values.items())))

    assert set(found.readings) | set(found.missing) == set(BY_NAME)
    assert not set(found.readings) & set(found.missing)
    assert all(math.isfinite(reading.value) and reading.value >= 0 for reading in found.readings.values())
    assert 0 <= (found.value("kv_use") or 0) <= 1


@given(some.floats(0, 1e9), some.sampled_from(sorted(TO_CANONICAL)))
def test_units_become_the_canonical_one(value: float, unit: str) -> None:
    found = read(f"x {value!r}\n", Series("x", unit), name="queue_time").value("queue_time")

    assert found == pytest.approx(value * {"ms": 1e-3, "us": 1e-6, "ns": 1e-9, "percent": 1e-2}.get(unit, 1))


def test_the_newest_spelling_wins_and_gateways_may_write_an_underscore() -> None:
    both = (Series("vllm:new"), Series("vllm:old"))

    assert read("vllm:new 1\nvllm:old 2\n", *both).value("waiting") == 1
    assert read("vllm_old 2\n", *both).value("waiting") == 2


def test_several_engines_are_added_up_but_the_fullest_cache_counts_alone() -> None:
    rows = 'x{engine="0"} 0.25\nx{engine="1"} 0.5\n'

    assert read(rows, Series("x")).value("waiting") == 0.75
    assert read(rows, Series("x"), name="kv_use").value("kv_use") == 0.5


def test_of_several_models_only_ours_counts_and_a_single_one_may_have_any_name() -> None:
    rows = 'x{model_name="chat"} 3\nx{model_name="other"} 4\n'

    assert read(rows, Series("x"), label="model_name", model="chat").value("waiting") == 3
    assert read(rows, Series("x"), label="model_name", model="third").value("waiting") is None
    assert read('x{model_name="chat-v2"} 5\n', Series("x"), label="model_name", model="chat").value("waiting") == 5


def test_a_name_that_begins_like_another_is_not_counted_with_it() -> None:
    assert read('x 5\nx_by_reason{reason="capacity"} 5\n', Series("x")).value("waiting") == 5


@pytest.mark.parametrize("value", ["-0.39", "1.29", "4294967295", "NaN", "+Inf"])
def test_an_impossible_share_is_missing_and_the_reason_says_what_the_page_said(value: str) -> None:
    found = read(f"x {value}\n", Series("x"), name="kv_use")

    assert found.value("kv_use") is None
    assert found.missing["kv_use"].startswith("the page says")


def test_rows_that_come_with_the_first_event_are_zero_only_where_their_family_is_there() -> None:
    errors = Series("http_requests_total", where={"status": ("5xx",)}, none_is_zero=True)

    assert read('http_requests_total{status="2xx"} 7\n', errors, name="http_errors").value("http_errors") == 0
    assert read("other 1\n", errors, name="http_errors").value("http_errors") is None


def test_a_sum_without_one_of_its_parts_is_missing() -> None:
    whole = Series("a", plus=("b",))

    assert read("a 1\nb 2\n", whole).value("waiting") == 3
    assert read("a 1\n", whole).value("waiting") is None


def test_the_kept_lines_of_a_page_are_those_of_its_gauges() -> None:
    assert set(gauges_of(LLAMA)) >= {"llamacpp:requests_deferred", "llamacpp_requests_deferred"}
    assert not [name for name in gauges_of(LLAMA) if "seconds" in name]


def test_a_name_that_is_no_canonical_one_is_an_error_of_the_caller() -> None:
    with pytest.raises(KeyError):
        EnginePage().value("wating")
    assert len({row.name for row in CANONICAL}) == len(CANONICAL)
