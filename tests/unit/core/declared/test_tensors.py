from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from changectl.core.declared import tensors

GOOD: dict[str, Any] = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"data": [[0.5, 1]]},
        {"datatype": "BYTES", "data": ["a", "b"]},
        {"datatype": "BOOL", "data": [True, False]},
        {"datatype": "INT8", "data": [-1, 2]},
    ],
)
def test_tensors_as_the_protocol_has_them_are_taken(changed: dict[str, Any]) -> None:
    assert tensors.problem({**GOOD, **changed}) == ""


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"data": [1.0]}, "`data` has 1 values, and the shape [1, 2] declares 2"),
        ({"data": [1.0, None]}, "is no FP32"),
        ({"data": [1.0, True]}, "is no FP32"),
        ({"data": [1.0, float("nan")]}, "is no FP32"),
        ({"data": "12"}, "`data` has to be a list"),
        ({"datatype": "UINT8", "data": [1, -1]}, "is no UINT8"),
        ({"datatype": "INT8", "data": [1, 1.5]}, "is no INT8"),
        ({"datatype": "float"}, "`datatype` has to be one of"),
        ({"shape": [0]}, "`shape` has to be a list"),
        ({"shape": [True, 2]}, "`shape` has to be a list"),
        ({"name": ""}, "`name` has to be a text"),
        ({"shape": [10**4000, 10**4000]}, "whole numbers above zero and below 2147483648"),
        ({"shape": [2**30] * 600}, "declares more than a request can hold"),
        ({"data": [1.0, 10**400]}, "is no FP32"),
        ({"extra": 1}, "and nothing else"),
    ],
)
def test_what_is_no_tensor_is_named(changed: dict[str, Any], why: str) -> None:
    assert why in tensors.problem({**GOOD, **changed})


def test_texts_of_a_yaml_file_become_what_the_type_says() -> None:
    texts = {"name": "1", "shape": ["1", "2"], "datatype": "INT32", "data": [["7", "-8"]]}

    assert tensors.from_texts(texts) == {"name": "1", "shape": [1, 2], "datatype": "INT32", "data": [[7, -8]]}
    assert tensors.from_texts({**texts, "datatype": "BYTES"})["data"] == [["7", "-8"]]
    assert tensors.from_texts({**texts, "datatype": "BOOL", "data": ["true", "no"]})["data"] == [True, "no"]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
ANY = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from([*GOOD, "q"]), inner))


@given(ANY)
def test_nothing_whatever_its_shape_breaks_the_reading(value: object) -> None:
    tensors.problem(tensors.from_texts(value))
    tensors.problem({**GOOD, "data": value})
