"""Two documents are the same to the last bit, or the first figure that is not is named."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.replaying.sameness import ADDED, as_known_then, first_difference

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


@given(DOCUMENTS)
def test_a_document_is_the_same_as_itself_read_again(document: Any) -> None:
    assert first_difference(document, copy.deepcopy(document)) is None


@given(DOCUMENTS, DOCUMENTS)
def test_two_documents_differ_exactly_where_their_json_does(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)

    assert (first_difference(one, other) is None) == same


@given(st.floats(1e-9, 1e9))
def test_the_last_bit_counts(figure: float) -> None:
    found = first_difference({"a": [1, {"b": figure}]}, {"a": [1, {"b": math.nextafter(figure, math.inf)}]})

    assert found is not None
    assert (found.place, found.recorded) == ("a/2/b", figure)


ROW = {"metric": "tpot_p50", "level": "peak", "after": 1}
LEVEL = {"name": "low", "n": 3}


@pytest.mark.parametrize(
    ("recorded", "again", "told"),
    [
        ({"rows": [ROW]}, {"rows": [{**ROW, "after": 2}]}, "rows/tpot_p50 at peak/after: recorded 1, computed 2"),
        ({"levels": [LEVEL]}, {"levels": []}, f"levels/low: recorded {LEVEL}, computed (absent)"),
        ({"rows": []}, {"rows": [{"after": 1}]}, "rows/1: recorded (absent), computed {'after': 1}"),
        ({"n": 1}, {"n": 1.0}, "n: recorded 1, computed 1.0"),
        ({"n": True}, {"n": 1}, "n: recorded True, computed 1"),
        ({"a": 1, "b": 1}, {"a": 2, "b": 2}, "a: recorded 1, computed 2"),
        ({"a": "(absent)"}, {}, "a: recorded (absent), computed (absent)"),
        ({"failures": {}}, {"failures": {"http_5xx": 3}}, "failures/http_5xx: recorded (absent), computed 3"),
        ({}, {"levels": [1]}, "levels: recorded (absent), computed [1]"),
        (
            {"rows": [ROW]},
            {"rows": [{**ROW, "evidence": 0.01, "low": -0.1}]},
            "rows/tpot_p50 at peak/evidence: recorded (absent), computed 0.01",
        ),
    ],
)
def test_the_first_difference_is_told_by_the_names_of_things(recorded: Any, again: Any, told: str) -> None:
    assert str(first_difference(recorded, again)) == told


NOW = {"name": "low", "n": 3, "not_sent": 0, "far": {"tpot": 1}, "failures": {"far": 2}}
THEN = {"name": "low", "n": 3, "failures": {"far": 2}}


@pytest.mark.parametrize(
    ("recorded", "again", "left", "names"),
    [
        ([THEN], [NOW], [THEN], ("far", "not_sent")),
        ([{**THEN, "not_sent": 0}], [NOW], [{**THEN, "not_sent": 0}], ("far",)),
        ([NOW], [NOW], [NOW], ()),
        ([{**NOW, "n": 4}], [NOW], [NOW], ()),
        ([THEN, NOW], [NOW, NOW], [NOW, NOW], ()),  # the same program knew them
        ([], [NOW], [NOW], ()),
        ([NOW], [{**NOW, "ended": None, "may_end": False}], [NOW], ()),  # is no figure
        ([{**NOW, "ended": 8.0}], [{**NOW, "ended": 8.5}], [{**NOW, "ended": 8.5}], ()),
    ],
)
def test_only_what_an_earlier_program_did_not_know_of_any_level_is_left_out_and_named(
    recorded: list[Any], again: list[Any], left: list[Any], names: tuple[str, ...]
) -> None:
    assert as_known_then(recorded, again) == (left, names)


def test_what_is_left_out_are_figures_of_a_level() -> None:
    assert set(ADDED) < {member.name for member in fields(LevelMeasurement)}
