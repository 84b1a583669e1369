"""Distributions drawn from raw records."""

from __future__ import annotations

from changectl.core.distribution import distributions
from changectl.core.records import Record

MS = 1_000_000


def answered(number: int, cls: str = "ok") -> Record:
    return Record(number, "peak", 0, "p", 0, 0, cls, t_start=0, t_sent=0, t_first=10 * MS, t_last=20 * MS, n_out=5)


def test_a_turn_that_could_not_be_sent_is_not_drawn_as_a_failure() -> None:
    lost = Record(2, "peak", 0, "c#2", 0, 0, "not_sent")
    records = [answered(0), answered(1, "http_5xx"), lost]

    first = distributions(records, records, ["peak"])[0]

    assert first.before is not None
    assert (first.before.n, first.before.failed) == (2, 1)
