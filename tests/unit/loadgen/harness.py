"""The packed program's results and jobs for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.measurement import Record


@dataclass
class Result:
    """What the packed program left behind."""

    status: int
    records: tuple[Record, ...]
    notes: list[dict[str, Any]]
    output: str

    @property
    def summary(self) -> dict[str, Any]:
        return next(note["summary"] for note in self.notes if "summary" in note)


def make_job(endpoint: str, /, **changes: Any) -> dict[str, Any]:
    job = {
        "endpoint": endpoint,
        "protocol": "openai_completions",
        "model": "m",
        "workload": [{"id": "a", "prompt": "hello", "max_tokens": 8}],
        "levels": [{"name": "low", "streams": 1, "requests": 1}],
        "salt": "phase-1",
        "seed": 7,
        "deadline": 2.0,
        "connect_timeout": 1.0,
        "stagger": 0.005,
    }
    return {**job, **changes}


def as_if_idle(measurement: Measurement) -> Measurement:
    """The same without what this machine's other work did to the client: that has tests of its own."""
    levels = tuple(replace(level, lag_p99=0.0, sent_rate=level.planned_rate) for level in measurement.levels)
    return replace(measurement, levels=levels)
