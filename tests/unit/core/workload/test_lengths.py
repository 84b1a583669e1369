from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.engines.support import text

from changectl.core.engine import Page
from changectl.core.telemetry.engine_page import Reading, read_lengths
from changectl.core.workload.lengths import between, differences, lengths, quantile
from changectl.engines import load

SHORT: dict[str, Any] = {"id": "s", "prompt": "abcd" * 10, "max_tokens": 20}
LONG: dict[str, Any] = {"id": "l", "prompt": "abcd" * 4000, "max_tokens": 20}


def live(**edges: tuple[float, float]) -> dict[str, Reading]:
    """Histograms in which everything lies between two edges."""
    return {
        name: Reading(0.0, 200.0, ((low, 0.0), (high, 200.0), (math.inf, 200.0))) for name, (low, high) in edges.items()
    }


def test_a_conversations_turns_hold_what_was_said_before() -> None:
    talk = {"id": "c", "system": "ab", "turns": ["abcd", "abcdef"], "max_tokens": 10}

    assert [(one.characters, one.tokens, one.max_tokens) for one in lengths([talk])] == [(6, 2, 10), (12, 13, 10)]


def test_of_tensors_nothing_can_be_said() -> None:
    assert lengths([{"id": "t", "inputs": []}]) == []


@pytest.mark.parametrize(
    ("entries", "edges", "found"),
    [
        ([SHORT], {"input": (5.0, 20.0)}, 0),
        ([SHORT], {"input": (500.0, 1000.0)}, 2),
        ([LONG], {"input": (500.0, 1000.0)}, 2),
        ([LONG], {"input": (2500.0, 5000.0)}, 0),
        ([LONG, *[SHORT] * 5], {"input": (5.0, 20.0)}, 1),  # the tail alone
        ([SHORT], {"output": (200.0, 500.0)}, 2),
        ([SHORT], {"output": (1.0, 2.0)}, 0),  # a limit says nothing of answers that end before it
        ([SHORT], {}, 0),
        ([], {"input": (500.0, 1000.0)}, 0),
    ],
)
def test_lengths_beyond_a_factor_of_two_are_named(
    entries: list[dict[str, Any]], edges: dict[str, tuple[float, float]], found: int
) -> None:
    assert len(differences(entries, live(**edges))) == found


def test_a_difference_says_both_figures() -> None:
    (first, _) = differences([SHORT], live(input=(500.0, 1000.0)))

    assert first == ("P50 of the input: about 10 tokens in the workload, 500 to 1000 in what the engine has served")


def test_an_empty_histogram_has_no_quantile_and_one_beyond_the_last_edge_has_no_upper_one() -> None:
    assert between(((1.0, 0.0), (math.inf, 0.0)), 0.5) is None
    assert between((), 0.5) is None
    assert between(((1.0, 0.0), (math.inf, 3.0)), 0.5) == (1.0, math.inf)


def test_vllms_histograms_are_read_and_empty_ones_compare_as_nothing() -> None:
    found = read_lengths(load("vllm").metric_table, Page(200, {}, text("vllm", "metrics.txt")))

    assert set(found) == {"input", "output"}
    assert found["input"].buckets[-1][0] == math.inf
    assert differences([LONG], {name: Reading(0.0, 0.0, ((1.0, 0.0), (math.inf, 0.0))) for name in found}) == []


@given(st.lists(st.integers(0, 10_000), min_size=1), st.floats(0.01, 1.0))
def test_a_quantile_is_a_value_that_the_share_does_not_exceed(values: list[int], share: float) -> None:
    found = quantile(values, share)

    assert found in values
    assert sum(value <= found for value in values) >= share * len(values) * (1 - 1e-9)
