"""What the figures of a phase follow from, beside the records of its requests: recorded, to compute them once more."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.measurement import summarise
from changectl.core.measuring.metrics import Guard, parse_metric
from changectl.core.measuring.records import Record
from changectl.core.measuring.self_test import SelfTest
from changectl.core.units import LevelLoad, Limit


@dataclass(frozen=True, slots=True)
class Basis:
    """All that `summarise` is given, but for the records.

    Attributes:
        sizes: level -> how much of it was to be sent, in order.
        slo: the service's limits, for the share of requests that are within them.
        facts: figures of the phase that do not come from requests.
        failure: why the load generator did not do all that it was asked for; None: it did.
        expected: the prompts of which the workload says what has to be in their answer.
        self_test: how exactly the load generator tells time; None: it had no self-test then.
        ended: level -> seconds after which it was over, its figures being precise.
    """

    sizes: Mapping[str, LevelSize]
    slo: Sequence[Guard] = ()
    facts: Mapping[str, float | None] = field(default_factory=dict)
    failure: str | None = None
    expected: Collection[str] = ()
    self_test: SelfTest | None = None
    ended: Mapping[str, float] = field(default_factory=dict)

    def measurement(self, records: Iterable[Record]) -> Measurement:
        """The phase's figures."""
        measurement = summarise(
            records,
            self.sizes,
            slo=self.slo,
            facts=self.facts,
            generator_failure=self.failure,
            expected=self.expected,
            ended=self.ended,
        )
        return replace(measurement, self_test=self.self_test)

    def under(self, slo: Sequence[Guard] | None) -> Basis:
        """The same with other limits; None: with its own."""
        return self if slo is None else replace(self, slo=slo)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {
            "levels": [
                {
                    "name": name,
                    "streams": size.load.streams,
                    "rate": size.load.rate,
                    "seconds": size.seconds,
                    "requests": size.requests,
                    "may_end": size.may_end,
                }
                for name, size in self.sizes.items()
            ],
            "slo": [guard_json(guard) for guard in self.slo],
            "facts": {
                name: value if value is not None and math.isfinite(value) else None
                for name, value in self.facts.items()
            },
            "failure": self.failure,
            "expected": sorted(self.expected),
            **({} if self.self_test is None else {"self_test": self.self_test.to_json()}),
            "ended": dict(self.ended),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Basis:
        """What `to_json` wrote. Raises ValueError: not its shape."""
        try:
            sizes = {
                one["name"]: LevelSize(
                    LevelLoad(one["streams"], one["rate"]),
                    one["seconds"],
                    one["requests"],
                    one.get("may_end", False),
                )
                for one in raw["levels"]
            }
            slo = tuple(guard_from(one) for one in raw["slo"])
            tested = SelfTest.from_json(raw["self_test"]) if "self_test" in raw else None
            ended = dict(raw.get("ended", {}))  # earlier programs let every level use its time
            return cls(sizes, slo, dict(raw["facts"]), raw["failure"], frozenset(raw["expected"]), tested, ended)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the shape of what a measurement stands on: {error!r}") from error


def guard_json(guard: Guard) -> dict[str, Any]:
    """A limit with its exact value, which words would round."""
    limit = guard.limit
    return {"metric": str(guard.ref), "operator": limit.operator, "value": limit.value, "source": guard.source}


def guard_from(raw: Mapping[str, Any]) -> Guard:
    """What `guard_json` wrote. Raises KeyError or ValueError."""
    ref = parse_metric(raw["metric"])
    operator = cast(Literal["<=", ">="], raw["operator"])
    return Guard(ref, Limit(operator, raw["value"], ref.metric.unit), raw["source"])
