"""What the load generator found out about itself before a phase, against a server of known pace on its own host."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Errors of the times to first token and per output token, and how late requests were begun; P99: the worst of so few.
FIGURES = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "lag_p99")
NOT_SAID = "it did not say how exactly it tells time"


@dataclass(frozen=True, slots=True)
class SelfTest:
    """How exactly it tells time.

    Attributes:
        tries: figure -> seconds of each try that came to an end; it tries again where a figure is beyond its limit.
        problem: what went wrong in the last try that came to none; "": nothing did.
    """

    tries: tuple[Mapping[str, float], ...] = ()
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        return {"tries": [dict(one) for one in self.tries], "problem": self.problem}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> SelfTest:
        """What `to_json` wrote. Raises KeyError, TypeError or AttributeError: not its shape."""
        return cls(tuple(dict(one) for one in raw["tries"]), str(raw["problem"]))


def said(summary: Mapping[str, Any]) -> SelfTest:
    """What a generator's summary says of it. One that does not say is not taken for exact."""
    test = summary.get("self_test")
    tries = test.get("tries") if isinstance(test, Mapping) else None
    found = [one for one in tries if isinstance(one, Mapping)] if isinstance(tries, list) else []
    problems = [str(one["problem"]) for one in found if "problem" in one]
    whole = tuple({name: float(one[name]) for name in FIGURES} for one in found if _whole(one))
    return SelfTest(whole, problems[-1] if problems else "" if whole else NOT_SAID)


def _whole(figures: Mapping[str, Any]) -> bool:
    """Whether every figure is there, as a number."""
    values = [figures.get(name) for name in FIGURES]
    return all(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) for value in values
    )
