"""Metrics in plans and services: `expect`, `accept` and `slo`, each line checked on its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from changectl.core.declared.fields import text_of
from changectl.core.declared.grammar import Fault, fault, faults
from changectl.core.measuring.metrics import Expectation, Guard, parse_expectation, parse_guard, parse_metric

T = TypeVar("T")

NEUTRAL = "neutral"
EXPECT_EXAMPLE = "expect: {rps_ok at peak: +10%}"
EXPECT_HINT = f"write `{EXPECT_EXAMPLE}`, or `expect: {NEUTRAL}` when nothing is to improve"


@dataclass(frozen=True, slots=True)
class Expect:
    """What a step is expected to do: gains, or nothing (`neutral`: kept when nothing got worse)."""

    gains: tuple[Expectation, ...] = ()

    @property
    def neutral(self) -> bool:
        """Whether no gain is expected."""
        return not self.gains

    def __str__(self) -> str:
        return ", ".join(str(gain) for gain in self.gains) or NEUTRAL


def _read_guards(value: Any, info: ValidationInfo) -> tuple[Guard, ...]:
    if isinstance(value, tuple):
        return value
    if not isinstance(value, dict) or not value:
        raise fault(
            "metrics and their limits belong here", f"write for example `{info.field_name}: {{tpot_p95: <= 45ms}}`"
        )
    source: Literal["slo", "accept"] = "accept" if info.field_name == "accept" else "slo"
    return _each_line(value, info, lambda name, limit: parse_guard(name, limit, source))


def _read_expect(value: Any, info: ValidationInfo) -> Expect:
    if isinstance(value, Expect):
        return value
    if value == NEUTRAL:
        return Expect()
    if not isinstance(value, dict) or not value:
        raise fault("no gain is named here", EXPECT_HINT)
    return Expect(_each_line(value, info, parse_expectation))


def _each_line(lines: Mapping[str, Any], info: ValidationInfo, parse: Callable[[str, str], T]) -> tuple[T, ...]:
    """Every line of a mapping parsed; a wrong metric is a complaint about the key, a wrong figure about the value."""
    found: list[Fault] = []
    parsed: list[T] = []
    for name, figure in lines.items():
        try:
            _check_metric(name, info)
        except ValueError as error:
            found.append(_complaint(name, error, key=True))
            continue
        try:
            parsed.append(parse(name, text_of(figure)))
        except ValueError as error:
            found.append(_complaint(name, error, key=False))
    if found:
        raise faults(found)
    return tuple(parsed)


def _check_metric(name: str, info: ValidationInfo) -> None:
    """Complain about a metric or level that does not exist, or not for the service's engine and protocol."""
    context = info.context or {}
    metric = parse_metric(name, context.get("levels")).metric.name
    why = context.get("lacking", {}).get(metric)
    if why:
        raise ValueError(f'"{metric}" does not exist for this service: {why}')


def _complaint(name: str, error: ValueError, *, key: bool) -> Fault:
    """What a parser says about one line: the message, and after its first semicolon the hint."""
    if isinstance(error, PydanticCustomError):
        context = error.context or {}
        return Fault(context["message"], context["hint"], (name,))
    message, _, hint = str(error).partition("; ")
    return Fault(message, hint, (name,), key=key)


EXPECT_SCHEMA = {
    "oneOf": [{"const": NEUTRAL}, {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}],
    "examples": [NEUTRAL, {"rps_ok at peak": "+10%"}],
}
ExpectField = Annotated[Expect, PlainValidator(_read_expect), WithJsonSchema(EXPECT_SCHEMA)]
Guards = Annotated[
    tuple[Guard, ...],
    PlainValidator(_read_guards),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "string"}, "examples": [{"tpot_p95": "<= 45ms"}]}
    ),
]
