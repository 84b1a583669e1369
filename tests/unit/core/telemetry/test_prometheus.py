from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as some
from tests.unit.engines.support import text

from changectl.core.telemetry.prometheus import Metrics, PageError, Sample, parse

NAMES = some.from_regex(r"[a-zA-Z_:][a-zA-Z0-9_:]{0,12}", fullmatch=True)
LABELS = some.dictionaries(
    some.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True), some.text(max_size=12), max_size=3
)
VALUES = some.floats(allow_nan=False)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def line(name: str, labels: dict[str, str], value: float) -> str:
    inside = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{inside}}} {value!r}" if labels else f"{name} {value!r}"


@given(NAMES, LABELS, VALUES)
def test_every_series_that_can_be_written_is_read_back(name: str, labels: dict[str, str], value: float) -> None:
    assert parse(line(name, labels, value)).samples == (Sample(name, labels, value),)


@given(some.text(max_size=60))
def test_any_text_is_read_or_refused_and_never_crashes(page: str) -> None:
    try:
        found = parse(page)
    except PageError:
        return
    assert isinstance(found, Metrics)


@pytest.mark.parametrize("page", ["llamacpp", "vllm"])
def test_recorded_pages_are_understood_whole(page: str) -> None:
    recorded = text(page, "metrics.txt")
    lines = [line for line in recorded.splitlines() if line and not line.startswith("#")]

    assert len(parse(recorded).samples) == len(lines)


def test_names_are_never_matched_by_prefix() -> None:
    recorded = parse(text("vllm", "metrics.txt"))

    assert recorded.total("vllm:num_requests_waiting") == 5
    assert recorded.total("vllm:num_requests_wait") is None


def test_labels_choose_among_series() -> None:
    recorded = parse(text("vllm", "metrics.txt"))

    assert recorded.total("vllm:num_requests_waiting_by_reason", reason="capacity") == 5
    assert recorded.total("vllm:num_requests_waiting_by_reason", reason="other") is None
    assert (recorded.labels("vllm:cache_config_info") or {})["num_gpu_blocks"] == "16"
    assert recorded.types["vllm:kv_cache_usage_perc"] == "gauge"


def test_a_counter_is_found_with_and_without_its_ending() -> None:
    assert parse("a_total 3").total("a") == 3
    assert parse("a 3").total("a_total") == 3
    assert parse("a 1\na_total 3").total("a") == 1


def test_special_values_are_read_and_not_summed() -> None:
    page = parse('a NaN\nb +Inf\nc{x="1"} 1\nc{x="2"} -Inf\nd{x="1"} +Inf\nd{x="2"} -Inf')

    assert math.isnan(page.find("a")[0].value)
    assert page.find("b")[0].value == math.inf
    assert all(page.total(name) is None for name in "abcd")


def test_an_empty_page_has_no_series_and_no_zero() -> None:
    assert parse("").total("a") is None
    assert parse("# only a comment\n").samples == ()


@pytest.mark.parametrize(
    "broken",
    [
        "a",
        "a one",
        "a 0x10",
        "a 1_000",
        "a 1 2 3",
        "1a 1",
        'a{b="c} 1',
        'a{b="c"d="e"} 1',
        'a{b="c",b="d"} 1',
        "a{b=c} 1",
        "a 1\na 2",
        'a{x="1"} 1\na{x="1"} 1',
        "<html>",
    ],
)
def test_what_is_not_understood_is_an_error_and_not_skipped(broken: str) -> None:
    with pytest.raises(PageError, match="line"):
        parse(broken)


def test_times_and_braces_inside_labels_are_accepted() -> None:
    page = parse('a{path="/x{y}",q="a\\"b\\\\c\\nd"} 1.5e3 1700000000000\n')

    assert page.samples[0].labels == {"path": "/x{y}", "q": 'a"b\\c\nd'}
    assert page.samples[0].value == 1500
