"""How plans and services name metrics, limits on them, and expected gains.

A name that is not in the catalogue is an error: a guard with a typing error must never be one that always passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal

from changectl.core.measuring.catalogue import CLASSES, METRICS, STATISTICS, Metric
from changectl.core.units import (
    OUTPUT_RATE,
    RATE,
    SECONDS,
    SHARE,
    TOKENS,
    Limit,
    format_change,
    parse_change,
    parse_limit,
)

__all__ = [
    "CLASSES",
    "METRICS",
    "STATISTICS",
    "Expectation",
    "Guard",
    "Metric",
    "MetricRef",
    "known_names",
    "parse_expectation",
    "parse_guard",
    "parse_metric",
]


@dataclass(frozen=True, slots=True)
class MetricRef:
    """What a plan points at: a metric, maybe one statistic of it, maybe one level."""

    metric: Metric
    statistic: str | None = None
    level: str | None = None

    @property
    def name(self) -> str:
        """Metric and statistic as written: `ttft_user_p95`."""
        return f"{self.metric.name}_{self.statistic}" if self.statistic else self.metric.name

    def __str__(self) -> str:
        return f"{self.name} at {self.level}" if self.level else self.name


@dataclass(frozen=True, slots=True)
class Guard:
    """An absolute limit on a metric, from the service (`slo`) or from the plan (`accept`)."""

    ref: MetricRef
    limit: Limit
    source: Literal["slo", "accept"] = "slo"

    @property
    def of_answers(self) -> bool:
        """Whether it limits what answers are, and not how fast they come."""
        return self.ref.metric.source == "answers"

    def __str__(self) -> str:
        return f"{self.source} {self.ref} {self.limit}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """The gain that a plan expects: a relative change in the metric's good direction."""

    ref: MetricRef
    change: float

    def __str__(self) -> str:
        return f"{self.ref} {format_change(self.change)}"


def parse_metric(text: str, levels: tuple[str, ...] | None = None) -> MetricRef:
    """The reference that `ttft_user_p95 at peak`, `rps_ok` or `tpot` is.

    Args:
        text: as written in a plan or service.
        levels: the names of the levels that exist; None: any name is taken.

    Raises:
        ValueError: unknown metric, statistic or level; the text lists what exists.
    """
    words = text.split()
    if len(words) not in (1, 3) or (len(words) == 3 and words[1] != "at"):
        raise ValueError(
            f'"{text}" does not name a metric; write METRIC or METRIC_STATISTIC, and "at LEVEL" if one level is meant'
        )
    metric, statistic = _split_name(words[0])
    level = words[2] if len(words) == 3 else None
    if level is not None and not metric.per_level:
        raise ValueError(f'"{metric.name}" is one figure for all levels; leave "at {level}" out')
    if level is not None and levels is not None and level not in levels:
        raise ValueError(f'there is no level "{level}"; {_meant(level, levels)}known: {", ".join(levels)}')
    return MetricRef(metric, statistic, level)


def _split_name(name: str) -> tuple[Metric, str | None]:
    if name in METRICS:
        return METRICS[name], None
    base, _, statistic = name.rpartition("_")
    metric = METRICS.get(base)
    if metric is None:
        raise ValueError(
            f'there is no metric "{name}"; {_meant(name, _nearest_first(name))}known: {", ".join(known_names())}'
        )
    if not metric.statistics:
        raise ValueError(f'"{base}" is one figure and has no statistics; write {base}')
    if statistic not in metric.statistics:
        raise ValueError(f'"{base}" has no statistic "{statistic}"; known: {", ".join(metric.statistics)}')
    return metric, statistic


def _meant(name: str, known: Iterable[str]) -> str:
    """`did you mean ...? `, where a known name is close; else nothing."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{close[0]}`? " if close else ""


def _nearest_first(name: str) -> Iterator[str]:
    """The metrics that a shortened name begins, `ttft_user_p95` for `ttft_p95`; else every name in full."""
    base, _, statistic = name.rpartition("_")
    begun = [metric for metric in METRICS.values() if base and metric.name.startswith(f"{base}_")]
    if begun and statistic in begun[0].statistics:
        yield f"{begun[0].name}_{statistic}"
        return
    for metric in METRICS.values():
        yield from (metric.name, *(f"{metric.name}_{one}" for one in metric.statistics))


def known_names() -> tuple[str, ...]:
    """How each metric may be written, for error messages: `ttft_user[_p50|_p95|_p99|_mean]`."""
    return tuple(f"{m.name}[_{'|_'.join(m.statistics)}]" if m.statistics else m.name for m in METRICS.values())


def parse_guard(
    name: str, limit: str, source: Literal["slo", "accept"] = "slo", levels: tuple[str, ...] | None = None
) -> Guard:
    """The guard of one line of `slo` or `accept`: `ttft_user_p95: <= 800ms`.

    Raises:
        ValueError: metric or limit not understood, a unit that the metric does not have, or a limit on its good side.
    """
    ref = parse_metric(name, levels)
    parsed = parse_limit(limit)
    if parsed.unit != ref.metric.unit:
        raise ValueError(f'"{limit}" does not fit {ref.metric.name}, which is measured in {_example(ref.metric)}')
    wanted = "<=" if ref.metric.better == "lower" else ">="
    if parsed.operator != wanted:
        raise ValueError(
            f'"{limit}" would forbid a good {ref.metric.name} ({ref.metric.better} is better); '
            f'write "{wanted} {limit.strip()[2:].strip()}"'
        )
    return Guard(ref, parsed, source)


def parse_expectation(name: str, change: str, levels: tuple[str, ...] | None = None) -> Expectation:
    """The expectation of one line of `expect`: `rps_ok at peak: +10%`.

    Raises:
        ValueError: metric or change not understood, a change for the worse, or a metric that is only ever limited.
    """
    ref = parse_metric(name, levels)
    if ref.metric.source == "answers":
        raise ValueError(f"no gain can be expected of {ref.metric.name}; write a limit under `accept`, like <= 10%")
    parsed = parse_change(change)
    if (parsed > 0) != (ref.metric.better == "higher"):
        sign = "+" if ref.metric.better == "higher" else "-"
        # Nothing can fall by more than all of it.
        share = "N%" if sign == "-" and parsed >= 1 else change.strip().lstrip("+-").strip()
        raise ValueError(
            f'"{change}" would make {ref.metric.name} worse ({ref.metric.better} is better); write {sign}{share}'
        )
    return Expectation(ref, parsed)


def _example(metric: Metric) -> str:
    examples = {
        SECONDS: "time, like 800ms",
        SHARE: "percent, like 1%",
        RATE: "requests per second, like 3 rps",
        OUTPUT_RATE: "tokens per second, like 200 tok/s",
        TOKENS: "tokens, like 50000 tokens",
    }
    return examples[metric.unit]
