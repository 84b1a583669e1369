"""Two documents are the same to the last bit, or the first figure that is not is named."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.replaying.sameness import first_difference

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
)


@given(DOCUMENTS)
def test_a_document_is_the_same_as_itself_read_again(document: Any) -> None:
    assert first_difference(document, copy.deepcopy(document)) is None


LISTS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4))


@given(LISTS, LISTS)
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
    ],
)
def test_the_first_difference_is_told_by_the_names_of_things(recorded: Any, again: Any, told: str) -> None:
    assert str(first_difference(recorded, again)) == told


@given(st.dictionaries(st.text(max_size=3), DOCUMENTS, max_size=4), st.dictionaries(st.text(max_size=3), DOCUMENTS))
def test_a_figure_that_an_earlier_program_did_not_know_is_no_difference(document: Any, more: Any) -> None:
    assert first_difference(document, {**more, **document}) is None
