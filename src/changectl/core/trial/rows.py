"""Which figures of a trial are guarded, and how each is held: by its limit, or else by the margin of its class."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row
from changectl.core.measuring.metrics import METRICS, Guard, Metric, MetricRef
from changectl.core.trial.estimate import Estimate, Point, figure_of
from changectl.core.trial.evidence import KEEP_PER_LOOK
from changectl.core.trial.failures import FAILURES, against_limit, against_margin, failures_of
from changectl.core.trial.guards import (
    Ground,
    Held,
    absolute,
    estimated,
    margin_text,
    obstacle,
    relative,
    settled,
    unripe,
)
from changectl.core.trial.noise import points_of
from changectl.core.trial.phases import level_names, of_letter
from changectl.core.trial.tails import with_tail

Judge = Callable[[Estimate, float], Held]


def guards_of(ground: Ground, service_class: str, guards: Sequence[Guard]) -> list[Held]:
    """Every guard of the trial, held."""
    held = [one for guard in guards if not guard.of_answers for one in _limits(guard, ground)]
    levels = level_names(ground.phases)
    for level in levels:
        for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
            if not harm.covered(name, level, guards):
                held += _margins(METRICS[name], level, service_class, ground)
    for metric in METRICS.values():
        if not metric.per_level and not harm.covered(metric.name, None, guards):
            held += _margins(metric, None, service_class, ground)
    uncovered = [level for level in levels if not harm.covered("failures", level, guards)]
    margin = FAILURES.margin(service_class)
    return [*held, against_margin(ground.phases, uncovered, margin)] if uncovered and margin else held


def _margins(metric: Metric, level: str | None, service_class: str, ground: Ground) -> Iterator[Held]:
    margin = metric.margin(service_class)
    if margin is None:
        return
    ref = MetricRef(metric, "p50" if metric.statistics else None, level)
    if not metric.per_level and all(phase.measurement.value(ref) is None for phase in ground.phases):
        return  # this engine never tells it
    if found := obstacle(ref, ground):
        yield settled(ref, margin_text(metric, margin), found.state, found.note, gap=found.gap)
        return
    yield _against_margin(ref, margin, ground)
    if metric.statistics:
        yield from _tail(metric, level, service_class, ground)


def _tail(metric: Metric, level: str | None, service_class: str, ground: Ground) -> Iterator[Held]:
    """P95 where every phase has enough requests for one, the mean where not."""
    ref, mean = MetricRef(metric, "p95", level), MetricRef(metric, "mean", level)
    margin, margin_of_mean = metric.margin(service_class, "p95"), metric.margin(service_class, "mean")
    if margin is None or margin_of_mean is None:
        return
    why = _no_percentile(ref, ground) or _unbounded_in_both(points_of(ref, ground.phases))
    if not why:
        yield with_tail(_against_margin(ref, margin, ground), ref, ground.phases)
        return
    yield settled(ref, margin_text(metric, margin), "not measurable", why, gap=False)
    if found := obstacle(mean, ground):
        yield settled(mean, margin_text(metric, margin_of_mean), found.state, found.note, gap=found.gap)
    else:
        yield with_tail(_against_margin(mean, margin_of_mean, ground), mean, ground.phases)


def _no_percentile(ref: MetricRef, ground: Ground) -> str:
    """Why a percentile does not exist in every phase; empty: it does."""
    without = [phase for phase in ground.phases if phase.measurement.value(ref) is None]
    if not without:
        return ""
    levels = [level for phase in without if (level := phase.measurement.level(ref.level or ""))]
    fewest = min((level.n for level in levels), default=0)
    return f"{fewest} requests in a phase are too few for a {(ref.statistic or '').upper()}"


def _unbounded_in_both(points: Sequence[Point]) -> str:
    saved, new = ([point.y for point in points if point.letter == letter] for letter in ("A", "B"))
    both = all(map(math.isinf, saved)) and any(map(math.isinf, new))
    return "too many requests failed before the change already" if both else ""


def _against_margin(ref: MetricRef, margin: float, ground: Ground) -> Held:
    def judge(effect: Estimate, before: float) -> Held:
        return relative(ref, margin, effect, before)

    return _held(ref, margin_text(ref.metric, margin), ground, judge, least=math.log1p(margin) / 2)


def _limits(guard: Guard, ground: Ground) -> Iterator[Held]:
    metric = guard.ref.metric
    levels = [guard.ref.level] if guard.ref.level else level_names(ground.phases)
    if metric is FAILURES:
        yield against_limit(guard, ground.phases, levels)
        return
    statistics = (guard.ref.statistic,) if guard.ref.statistic or not metric.statistics else harm.COVERED
    for level in levels if metric.per_level else [None]:
        for statistic in statistics:
            yield _limit(MetricRef(metric, statistic, level), guard, ground)


def _limit(ref: MetricRef, guard: Guard, ground: Ground) -> Held:
    basis = replace(ref, statistic="p50") if ref.metric.statistics else ref
    if found := obstacle(basis, ground):
        return settled(ref, str(guard), found.state, found.note)
    if ref.statistic in ("p95", "p99") and (why := _no_percentile(ref, ground)):
        # Whatever the median is beyond, a percentile above it is beyond as well.
        median = _against_limit(basis, guard, ground)
        if median.beyond:
            row = settled(ref, str(guard), "open", f"{why}, and the median is beyond it already").row
            return replace(median, row=replace(row, gap=False), clear=False)
        return settled(ref, str(guard), "not measurable", why, gap=guard.ref.statistic is not None)
    if found := obstacle(ref, ground):
        return settled(ref, str(guard), found.state, found.note)
    return _against_limit(ref, guard, ground)


def _against_limit(ref: MetricRef, guard: Guard, ground: Ground) -> Held:
    def judge(effect: Estimate, before: float) -> Held:
        return absolute(ref, guard, effect, before)

    return _held(ref, str(guard), ground, judge, guard)


def _held(
    ref: MetricRef, limit: str, ground: Ground, judge: Judge, guard: Guard | None = None, least: float = 0.0
) -> Held:
    points = points_of(ref, ground.phases)
    effect = estimated(ref, points, ground.noise)
    endless = [point for point in points if point.letter == "B" and math.isinf(point.y)]
    if endless:
        return _endless(ref, limit, ground, points, [point.number for point in endless])
    if effect is None:
        return _mended(ref, limit, points, ground, guard)
    held, first = judge(*effect), ground.noise.least_pairs(ref)
    decided = held.decided_by
    if held.beyond and not in_most_pairs(points, least):
        held = replace(held, beyond=False)

    def decided_by(number: int, guards: int) -> bool:
        return number >= first and decided is not None and decided(number, guards)

    return replace(held, decided_by=decided_by, waits=unripe(ref, ground))


def in_most_pairs(points: Sequence[Point], least: float) -> bool:
    """Whether B was worse than A by so much in more than half of the pairs that have both.

    A host that steps between the first two phases looks like half an effect and half a drift; the pairs after the step
    do not show it.
    """
    by_pair: dict[int, dict[str, float]] = {}
    for point in points:
        by_pair.setdefault((point.number + 1) // 2, {})[point.letter] = point.y
    moved = [pair["B"] - pair["A"] for pair in by_pair.values() if len(pair) == 2]
    return not moved or 2 * sum(one > least for one in moved) > len(moved)


def _endless(ref: MetricRef, limit: str, ground: Ground, points: Sequence[Point], endless: Sequence[int]) -> Held:
    """A figure without bounds, because so many requests failed: that more failed is the evidence that it needs."""
    found = failures_of(ground.phases, [ref.level] if ref.level else level_names(ground.phases))
    saved = [point.y for point in points if point.letter == "A" and math.isfinite(point.y)]
    before = figure_of(ref.metric, math.fsum(saved) / len(saved) if saved else math.inf)
    after, note = figure_of(ref.metric, math.inf), f"too many failed in {', '.join(f'phase {one}' for one in endless)}"
    row = Row(ref.name, ref.metric.unit, ref.level, before, after, None, limit, "open", note)
    beyond = 2 * len(endless) > len(of_letter(ground.phases, "B")) and bool(saved)
    return Held(row, found.p_worse() if found else 1.0, beyond)


def _mended(ref: MetricRef, limit: str, points: Sequence[Point], ground: Ground, guard: Guard | None) -> Held:
    """Without bounds before, and with some now: that is no loss; an absolute limit still asks for its bound."""
    new = [point.y for point in points if point.letter == "B"]
    known = ground.noise.model.of(str(ref)).spread
    effect = Estimate(-math.inf, 1.0, known, known, math.fsum(new) / len(new), len(new))
    bound = figure_of(ref.metric, effect.upper_of_b(KEEP_PER_LOOK))
    note = "without bounds before the change"
    after = figure_of(ref.metric, effect.mean_b)
    row = Row(ref.name, ref.metric.unit, ref.level, math.inf, after, None, limit, "open", note, bound=bound)
    return Held(row, 1.0, clear=guard is None or guard.limit.holds(bound))
