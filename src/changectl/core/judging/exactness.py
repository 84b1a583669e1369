"""Does the load generator tell time well enough, on its host and at that moment, for its figures to be judged?

Its lateness while it measures has a limit of its own (see `gates`). This is about all of its stamps, held against a
server of known pace before each phase: an error that is never seen in the figures of the service itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.metrics import METRICS
from changectl.core.units import format_duration

LAG_SECONDS = 0.010
LAG_SHARE = 0.2  # of the time to first token: below it, lateness cannot make a factor of 1.5
INEXACT, UNTESTED = "generator_inexact", "generator_untested"
_TTFT, _TPOT = METRICS["ttft_user"].floor, METRICS["tpot"].floor
# A median that is off by a metric's floor could be a breach by itself; a single request may be off by twice as much.
LIMITS: dict[str, float] = {
    "ttft_p50": _TTFT,
    "ttft_p99": 2 * _TTFT,
    "tpot_p50": _TPOT,
    "tpot_p99": 2 * _TPOT,
    "lag_p99": LAG_SECONDS,
}
_SAID = {
    "ttft_p50": "first tokens were noticed {} late (P50",
    "ttft_p99": "a first token was noticed {} late (P99",
    "tpot_p50": "the time per token was off by {} (P50",
    "tpot_p99": "the time per token was off by {} (P99",
    "lag_p99": "a request was begun {} late (P99",
}


def shortcomings(measurement: Measurement) -> list[tuple[str, str]]:
    """Why nothing may follow from times that this generator stamped: a word for it, and the figures; empty: it may.

    A record from before there was a self-test says nothing of it, and nothing is held against that.
    """
    test = measurement.self_test
    if test is None:
        return []
    if not test.tries:
        return [(UNTESTED, f"the load generator was not proven to tell time: {test.problem}")]
    limits = _limits(measurement)
    found = min((list(_beyond(one, limits)) for one in test.tries), key=len)
    if not found:
        return []
    said = "the load generator did not tell time well enough, against a server of known pace on its own host"
    return [(INEXACT, f"{said}: {'; '.join(found)}")]


def _limits(measurement: Measurement) -> Mapping[str, float]:
    """What is small beside the times of the service itself may be more: below that share it cannot be gross harm."""
    shares = {}
    for name in LIMITS:
        metric = "tpot" if name.startswith("tpot") else "ttft_user"
        medians = [level.value(metric, "p50") for level in measurement.levels]
        known = [median for median in medians if median is not None and math.isfinite(median)]
        shares[name] = LAG_SHARE * min(known, default=0.0)
    return {name: max(limit, shares[name]) for name, limit in LIMITS.items()}


def _beyond(figures: Mapping[str, float], limits: Mapping[str, float]) -> Iterator[str]:
    for name, limit in limits.items():
        if not figures[name] <= limit:
            yield f"{_SAID[name].format(format_duration(figures[name]))}; limit {format_duration(limit)})"
