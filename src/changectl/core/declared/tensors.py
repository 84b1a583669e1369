"""Tensors of the Open Inference Protocol as JSON has them: name, shape, datatype, and data flat or nested."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

EXAMPLE = '{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [0.5, 1.5]}'
_KEYS = ("data", "datatype", "name", "shape")
_INTEGERS = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_FLOATS = ("FP16", "FP32", "FP64", "BF16")
DATATYPES = ("BOOL", "BYTES", *_FLOATS, *_INTEGERS)
_LONGEST = 1 << 31  # above any size of a dimension, and above all values that a request can hold


def problem(tensor: Any) -> str:
    """Why it is no input tensor; empty: it is one."""
    if not isinstance(tensor, Mapping) or set(tensor) != set(_KEYS):
        return f"a tensor has {', '.join(f'`{key}`' for key in _KEYS)}, and nothing else"
    if not isinstance(tensor["name"], str) or not tensor["name"]:
        return "`name` has to be a text"
    if tensor["datatype"] not in DATATYPES:
        return f"`datatype` has to be one of {', '.join(DATATYPES)}"
    shape = tensor["shape"]
    if not isinstance(shape, list) or not all(_is_size(size) for size in shape):
        return f"`shape` has to be a list of whole numbers above zero and below {_LONGEST}"
    return _about_data(tensor["data"], str(tensor["datatype"]), shape)


def _is_size(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and 0 < size < _LONGEST


def _about_data(data: Any, datatype: str, shape: list[int]) -> str:
    if not isinstance(data, list):
        return "`data` has to be a list"
    values = list(_leaves(data))
    declared = math.prod(shape)
    if len(values) != declared:
        number = str(declared) if declared < _LONGEST else "more than a request can hold"
        return f"`data` has {len(values)} values, and the shape {shape} declares {number}"
    wrong = next((value for value in values if not _fits(value, datatype)), None)
    return "" if wrong is None else f"`data` holds a value that is no {datatype}"


def _leaves(data: list[Any]) -> Iterator[Any]:
    for member in data:
        if isinstance(member, list):
            yield from _leaves(member)
        else:
            yield member if member is not None else ()  # nothing is no value of any datatype


def _fits(value: Any, datatype: str) -> bool:
    if datatype == "BOOL":
        return isinstance(value, bool)
    if datatype == "BYTES":
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if datatype in _FLOATS:
        return isinstance(value, int | float) and _is_finite(value)
    return isinstance(value, int) and (value >= 0 or not datatype.startswith("U"))


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no floating-point number reaches
        return False


def from_texts(tensor: Any) -> Any:
    """A tensor of a YAML file, whose scalars are all text, with numbers and truth values in it; what is none stays."""
    if not isinstance(tensor, Mapping):
        return tensor
    read = _readers().get(str(tensor.get("datatype")), str)
    typed = {"shape": _each(tensor.get("shape"), int), "data": _each(tensor.get("data"), read)}
    return {key: typed.get(key, value) for key, value in tensor.items()}


def _readers() -> dict[str, Callable[[str], Any]]:
    truth = {"true": True, "false": False}
    return {
        "BOOL": truth.__getitem__,
        "BYTES": str,
        **dict.fromkeys(_FLOATS, float),
        **dict.fromkeys(_INTEGERS, int),
    }


def _each(value: Any, read: Callable[[str], Any]) -> Any:
    if isinstance(value, list):
        return [_each(member, read) for member in value]
    try:
        return read(value) if isinstance(value, str) else value
    except (ValueError, KeyError):
        return value
