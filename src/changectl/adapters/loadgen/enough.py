"""How precise the figures of a level have to be before it may end: what the job says of it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, NamedTuple, Tuple

LATENCIES = ("ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max", "e2e_user", "e2e_sent")
RATES = ("rps_ok", "out_tok_s")
STATISTICS = ("p50", "p95", "p99", "mean")


class Enough(NamedTuple):
    """When a level that lasts for a time is over before it."""

    requests: int  # good answers, at the least
    errors: Mapping[str, float]  # figure -> the standard error of its logarithm, below which it is precise


def enough(raw: Mapping[str, Any]) -> Enough:
    """What a job says.

    Raises:
        ValueError: it makes no sense; the text says why.
    """
    requests, given = raw.get("requests"), raw.get("errors")
    if not isinstance(requests, int) or isinstance(requests, bool) or requests < 1:
        raise ValueError('"requests" must be at least 1')
    if not isinstance(given, dict) or not given:
        raise ValueError('"errors" names no figure')
    errors: Dict[str, float] = {}
    for figure, error in given.items():
        if parts(figure) is None:
            raise ValueError('nobody can say how precise "{}" is'.format(figure))
        if isinstance(error, bool) or not isinstance(error, (int, float)) or not 0 <= error < float("inf"):
            raise ValueError('the error of "{}" must be a number, and not below zero'.format(figure))
        errors[figure] = float(error)
    return Enough(requests, errors)


def parts(figure: str) -> "Tuple[str, str] | None":
    """Metric and statistic of a figure: `ttft_user_p50`; a rate has none ("")."""
    if figure in RATES:
        return figure, ""
    metric, _, statistic = figure.rpartition("_")
    return (metric, statistic) if metric in LATENCIES and statistic in STATISTICS else None
