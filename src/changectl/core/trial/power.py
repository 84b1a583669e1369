"""Whether an effort can decide the limits of a step at all, by what is known of the noise before anything starts.

A margin is decided if a figure that did not change is shown to keep it, and a gain if one of that size is told from
none, four times out of five. What is judged by counts (failures, answers) and absolute limits (`slo`, `accept`) are not
looked at: where the figure will lie, nobody knows beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from changectl.core.judging import harm
from changectl.core.measuring.metrics import METRICS, Expectation, Guard, MetricRef
from changectl.core.trial.noise import LEAST_PAIRS
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import MOST_PAIRS
from changectl.core.trial.price import smallest_provable
from changectl.core.units import format_share


@dataclass(frozen=True, slots=True)
class Blind:
    """A limit or a gain that the effort leaves undecided.

    Attributes:
        text: which, and how much would be decided.
        certain: whether the noise behind that is the host's own; else it is a guess.
        enough: the smallest number of pairs that decides it; None: no trial has so many.
    """

    text: str
    certain: bool
    enough: int | None


@dataclass(frozen=True, slots=True)
class Power:
    """What an effort can decide of a step on one host.

    Attributes:
        pairs: that it has at most.
        blind: what it leaves undecided.
        spared: why that is not asked; "": it is.
        accepted: whether the plan accepts an end without a verdict.
        service: whose host it is.
    """

    pairs: int = 0
    blind: tuple[Blind, ...] = ()
    spared: str = ""
    accepted: bool = False
    service: str = ""


def blind_spots(
    pairs: int,
    noise: NoiseModel,
    usual: Mapping[str, float],
    *,
    service_class: str,
    guards: Sequence[Guard],
    expect: Sequence[Expectation],
    levels: Sequence[str],
) -> tuple[Blind, ...]:
    """What so many pairs leave undecided.

    Args:
        pairs: of the effort.
        noise: what is known of the host.
        usual: figure -> how large it was lately; of what is not known, a margin may be smaller than what counts at all.
        service_class: decides the default margins.
        guards: the absolute limits in force, which replace them.
        expect: the expected gains.
        levels: the names of the levels.
    """
    asked = [*_margins(service_class, guards, levels, usual), *_gains(expect, levels)]
    found = (_blind(pairs, noise, ref, size, what, sure) for ref, size, what, sure in asked)
    return tuple(one for one in found if one is not None)


Asked = tuple[
    MetricRef, float, str, bool
]  # the figure, how small an effect has to be told, in words, whether that is sure


def _margins(
    service_class: str, guards: Sequence[Guard], levels: Sequence[str], usual: Mapping[str, float]
) -> Iterator[Asked]:
    for level in levels:
        for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
            metric = METRICS[name]
            margin = metric.margin(service_class)
            if margin is None or harm.covered(name, level, guards):
                continue
            ref = MetricRef(metric, "p50" if metric.statistics else None, level)
            before = usual.get(str(ref), 0.0)
            # Less than its floor is never harm, so of a small figure a larger share has to be told.
            size = max(margin, metric.floor / before) if before else margin
            yield ref, size, f"{ref}: a margin of {format_share(size, 2)}", bool(before) or not metric.floor


def _gains(expect: Sequence[Expectation], levels: Sequence[str]) -> Iterator[Asked]:
    for gain in expect:
        metric = gain.ref.metric
        if metric.name == "failures":
            continue
        statistic = gain.ref.statistic or ("p50" if metric.statistics else None)
        own = [gain.ref.level] if gain.ref.level or not metric.per_level else levels
        size = math.expm1(abs(math.log1p(gain.change)))
        for level in own:
            ref = MetricRef(metric, statistic, level)
            yield ref, size, f"{ref}: an expected gain of {format_share(abs(gain.change), 2)}", True


def _blind(pairs: int, noise: NoiseModel, ref: MetricRef, size: float, what: str, sure: bool) -> Blind | None:
    own = noise.of(str(ref))

    def least(number: int) -> float:
        return smallest_provable(number, own.spread) if number >= LEAST_PAIRS[own.source] else math.inf

    if least(pairs) <= size:
        return None
    enough = next((number for number in range(1, MOST_PAIRS + 1) if least(number) <= size), None)
    many = "1 pair decides" if pairs == 1 else f"{pairs} pairs decide"
    seen = "gross harm alone" if math.isinf(least(pairs)) else f"{format_share(least(pairs), 2)} or more"
    return Blind(f"{what}, and {many} {seen}", sure and own.source == "calibrated", enough)
