"""Values as command lines write them: numbers, booleans, JSON, and whether two spellings mean the same."""

from __future__ import annotations

import json
import math
import re
from decimal import Decimal

from changectl.core.settings import Setting, Value

_TRUE = {"true", "1", "yes", "on", "enabled"}
_FALSE = {"false", "0", "no", "off", "disabled"}
# Python itself refuses to read thousands of digits; no engine has a number of more than some twenty.
_INT = re.compile(r"[+-]?\d{1,400}")
_SUFFIXED = re.compile(r"(\d{1,400}(?:\.\d{1,400})?)([kKmMgGtT])")
_DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def parse_int(text: str, *, suffixes: bool = False) -> int | None:
    """A whole number; with `suffixes` also 1k = 1000, 1K = 1024, 25.6k. None: not a number."""
    text = text.strip()
    if _INT.fullmatch(text):
        return int(text)
    match = _SUFFIXED.fullmatch(text) if suffixes else None
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix in _DECIMAL:
        return int(Decimal(number) * _DECIMAL[suffix])
    return None if "." in number else int(number) * _BINARY[suffix]


def parse_float(text: str) -> float | None:
    """A finite decimal number; None: not one."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def parse_bool(text: str) -> bool | None:
    """True or false in the words that engines accept; None: neither."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


def parse_number(setting: Setting, text: str, *, suffixes: bool = False) -> float | int | None:
    """The value of a numeric setting; None: not numeric, or not a number."""
    if setting.type == "int":
        return parse_int(text, suffixes=suffixes)
    return parse_float(text) if setting.type == "float" else None


def same(setting: Setting, one: Value, other: Value, *, suffixes: bool = False) -> bool:
    """Whether both mean the same: compared parsed where both parse, otherwise as text."""
    if one is None or other is None:
        return one is other
    left, right = (_meaning(setting, text, suffixes=suffixes) for text in (one, other))
    return left == right if left is not None and right is not None else one.strip() == other.strip()


def _meaning(setting: Setting, text: str, *, suffixes: bool) -> object:
    if setting.type == "bool":
        return parse_bool(text)
    if setting.type == "json":
        try:
            # Wrapped, so that the JSON value null differs from "not JSON".
            return (json.loads(text),)
        except ValueError:
            return None
    return parse_number(setting, text, suffixes=suffixes)


def problem(setting: Setting, text: str, *, suffixes: bool = False) -> str | None:
    """Why the text cannot be a value of the setting; None: no objection."""
    if setting.type == "bool":
        return None if parse_bool(text) is not None else f"{setting.name} takes true or false, not {text!r}"
    if setting.type == "json":
        return None if _meaning(setting, text, suffixes=False) is not None else f"{setting.name} takes JSON"
    if setting.type == "str":
        return None
    number = parse_number(setting, text, suffixes=suffixes)
    if number is None:
        kind = "a whole number" if setting.type == "int" else "a number"
        return f"{setting.name} takes {kind}, not {text!r}"
    if setting.minimum is not None and number < setting.minimum:
        return f"{setting.name} is at least {setting.minimum:g}, not {text}"
    if setting.maximum is not None and number > setting.maximum:
        return f"{setting.name} is at most {setting.maximum:g}, not {text}"
    return None
