"""How much evidence a plan asks for: one look, several pairs of phases, or as many as a time allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, WithJsonSchema

from changectl.core.declared.fields import text_of
from changectl.core.declared.grammar import Fault, fault, faults, nearest
from changectl.core.declared.service import Service
from changectl.core.declared.source import Source
from changectl.core.declared.traffic_spec import NONE
from changectl.core.errors import Problem
from changectl.core.trial.order import PAIRS, Times, length, pairs_within
from changectl.core.units import format_duration, parse_duration

QUICK, OBSERVE, STANDARD, TIME = "quick", "observe", "standard", "time"
KNOWN = (QUICK, OBSERVE, *PAIRS, TIME)
OBSERVED_FOR = 600.0  # seconds before the change, and again after it, where the plan names no time
TOO_SHORT, OUTAGE_TOO_SHORT = "effort_too_short", "outage_too_short"


@dataclass(frozen=True, slots=True)
class Effort:
    """An effort as a plan names it.

    Attributes:
        name: quick (one A, one B, gross harm alone), observe (the same under live traffic alone), standard, thorough,
            or time.
        seconds: of `time`: what all phases and starts may take; of `observe`: how long each of its two looks lasts.
    """

    name: str
    seconds: float | None = None

    def __str__(self) -> str:
        return self.name if self.seconds is None else f"{{{self.name}: {format_duration(self.seconds)}}}"

    @property
    def quick(self) -> bool:
        """Whether one look before and one after is all; else the service is started for every phase."""
        return self.name in (QUICK, OBSERVE)

    @property
    def observed_for(self) -> float | None:
        """Seconds of live traffic that are observed before the change, and again after it; None: load is sent."""
        return (self.seconds or OBSERVED_FOR) if self.name == OBSERVE else None

    def starts_in_a_row(self, instances: int) -> int:
        """Starts of an instance that may follow each other at once: a fresh baseline, the change, and the way back.

        What came before does not count: each play clears the manager's count before its own start.
        """
        return 3 if instances > 1 or not self.quick else 2

    def pairs(self, times: Times) -> int:
        """At most so many pairs; 0: the time does not even suffice for one."""
        if self.name == TIME and self.seconds is not None:
            return pairs_within(self.seconds, times)
        return PAIRS.get(self.name, 1)

    def pairs_left(self, used: float, times: Times) -> int:
        """How many more pairs fit into the rest of a time; 0: it is used up, or this is no time."""
        return 0 if self.seconds is None else pairs_within(self.seconds - used, times)

    def too_short(self, times: Times) -> str:
        """What to write instead of a time in which no pair fits."""
        return (
            f"one pair takes {format_duration(length(1, times).seconds, 3)}: write `effort: {{time: ...}}` above that"
        )


def _read(value: Any) -> Effort:
    if isinstance(value, Effort):
        return value
    if isinstance(value, dict):
        return _timed(value)
    text = text_of(value)
    if text == TIME:
        raise fault("a time belongs to it", "write `effort: {time: 45m}`")
    if text not in KNOWN:
        raise fault(f"unknown effort `{text}`", f"write `effort: quick`; {nearest(text, KNOWN)}")
    return Effort(text)


def _timed(value: dict[Any, Any]) -> Effort:
    name = next((key for key in (TIME, OBSERVE) if set(value) == {key}), None)
    if name is None:
        named = ", ".join(f"`{key}`" for key in value) or "nothing"
        raise fault(
            f"an effort with settings has a time alone, not {named}",
            "write `effort: {time: 45m}`, or `effort: {observe: 30m}`",
        )
    try:
        return Effort(name, parse_duration(text_of(value[name])))
    except ValueError as error:
        raise faults([Fault(str(error), "write a duration like 45m", (name,))]) from error


EffortField = Annotated[
    Effort,
    PlainValidator(_read),
    PlainSerializer(str),
    WithJsonSchema({
        "anyOf": [
            {"enum": [QUICK, OBSERVE, *PAIRS]},
            *({"type": "object", "properties": {name: {"type": "string"}}, "required": [name],
               "additionalProperties": False} for name in (TIME, OBSERVE)),
        ]
    }),
]  # fmt: skip


def check(effort: Effort, outage: float | None, source: Source, service: Service) -> Iterator[Problem]:
    """What of an effort its service does not allow.

    An instance that nothing takes out of traffic is stopped again and again by several pairs, so the plan has to say
    how long that may take in all.
    """
    if effort.quick or outage is not None or service.traffic != NONE:
        return
    message = f"effort `{effort}` starts {service.service} again for every phase, and nothing takes it out of service"
    hint = "add `outage: 30m`, the time that it may be stopped or loading in all, or write `effort: quick`"
    yield source.problem(("effort",), message, hint)
