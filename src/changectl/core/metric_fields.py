"""Metrics in plans and services: `expect`, `accept` and `slo`, each line checked on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import PlainValidator, ValidationInfo, WithJsonSchema

from changectl.core.fields import text_of
from changectl.core.grammar import Fault, fault, faults
from changectl.core.metrics import Expectation, Guard, parse_expectation, parse_guard

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


def parse_guards(value: Any, info: ValidationInfo) -> tuple[Guard, ...]:
    """A mapping of metrics and limits (`slo`, `accept`) as guards; every wrong line is its own complaint."""
    if isinstance(value, tuple):
        return value
    entries = mapping_of(value, f"{info.field_name}: {{tpot_p95: <= 45ms}}")
    source: Literal["slo", "accept"] = "accept" if info.field_name == "accept" else "slo"
    found: list[Fault] = []
    guards: list[Guard] = []
    for name, limit in entries.items():
        try:
            guard = parse_guard(name, text_of(limit), source, levels_of(info))
            reject_lacking(guard.ref.metric.name, info)
            guards.append(guard)
        except ValueError as error:
            found.append(entry_fault(name, error))
    if found:
        raise faults(found)
    return tuple(guards)


def mapping_of(value: Any, example: str) -> Mapping[str, Any]:
    """The value as a filled mapping. Raises the complaint with the example otherwise."""
    if not isinstance(value, dict) or not value:
        raise fault("metrics and their figures belong here", f"write for example `{example}`")
    return value


def entry_fault(name: str, error: Exception) -> Fault:
    """What a parser says about one line of a mapping: message, and after its first semicolon the hint."""
    context = getattr(error, "context", None)
    if context:
        return Fault(context["message"], context["hint"], (name,))
    message, _, hint = str(error).partition("; ")
    return Fault(message, hint, (name,), key=f'"{name}"' in message or name.split(" ")[0] in message.split('"'))


def levels_of(info: ValidationInfo) -> tuple[str, ...] | None:
    """The names of the levels that exist for what is being read; None: not known here."""
    levels: tuple[str, ...] | None = (info.context or {}).get("levels")
    return levels


def reject_lacking(metric: str, info: ValidationInfo) -> None:
    """Complain about a metric that the service's engine and protocol cannot give."""
    why = (info.context or {}).get("lacking", {}).get(metric)
    if why:
        raise ValueError(f'"{metric}" does not exist for this service: {why}; name another metric')


def _read_expect(value: Any, info: ValidationInfo) -> Expect:
    if isinstance(value, Expect):
        return value
    if value == NEUTRAL:
        return Expect()
    if not isinstance(value, dict) or not value:
        raise fault("no gain is named here", EXPECT_HINT)
    found: list[Fault] = []
    gains: list[Expectation] = []
    for name, change in mapping_of(value, EXPECT_EXAMPLE).items():
        try:
            gain = parse_expectation(name, text_of(change), levels_of(info))
            reject_lacking(gain.ref.metric.name, info)
            gains.append(gain)
        except ValueError as error:
            found.append(entry_fault(name, error))
    if found:
        raise faults(found)
    return Expect(tuple(gains))


EXPECT_SCHEMA = {
    "oneOf": [{"const": NEUTRAL}, {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}}],
    "examples": [NEUTRAL, {"rps_ok at peak": "+10%"}],
}
ExpectField = Annotated[Expect, PlainValidator(_read_expect), WithJsonSchema(EXPECT_SCHEMA)]
Guards = Annotated[
    tuple[Guard, ...],
    PlainValidator(parse_guards),
    WithJsonSchema(
        {"type": "object", "additionalProperties": {"type": "string"}, "examples": [{"tpot_p95": "<= 45ms"}]}
    ),
]
