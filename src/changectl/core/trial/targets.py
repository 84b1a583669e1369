"""The gain that a plan expects. GAIN: at least as much was seen, with evidence; FLAT: the bounds exclude as much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from changectl.core.judging.judgement import Row, State
from changectl.core.measuring.metrics import Expectation, MetricRef
from changectl.core.trial.estimate import Estimate
from changectl.core.trial.evidence import KEEP_PER_LOOK, PER_LOOK
from changectl.core.trial.failures import FAILURES, Failures, failures_of, row_of
from changectl.core.trial.guards import Ground, estimated, obstacle, settled, unripe, with_bounds
from changectl.core.trial.noise import points_of
from changectl.core.trial.phases import level_names, pairs_done
from changectl.core.units import format_change


@dataclass(frozen=True, slots=True)
class Target:
    """An expected gain at one level; `decided_by`: whether so many pairs would decide it, as for a guard."""

    row: Row
    decided_by: Callable[[int], bool] | None = None


def targets_of(expect: Sequence[Expectation], ground: Ground) -> list[Target]:
    """Every expected gain, at each level that it means."""
    return [target for gain in expect for target in _targets(gain, ground)]


def _targets(gain: Expectation, ground: Ground) -> Iterator[Target]:
    metric = gain.ref.metric
    if metric is FAILURES:
        yield _failures(gain, ground)
        return
    statistic = gain.ref.statistic or ("p50" if metric.statistics else None)
    if not metric.per_level:
        yield _target(MetricRef(metric, statistic), gain, ground)
        return
    for level in [gain.ref.level] if gain.ref.level else level_names(ground.phases):
        yield _target(MetricRef(metric, statistic, level), gain, ground)


def _target(ref: MetricRef, gain: Expectation, ground: Ground) -> Target:
    limit = _limit(gain)
    if found := obstacle(ref, ground):
        return Target(settled(ref, limit, found.state, found.note).row)
    points = points_of(ref, ground.phases)
    effect = estimated(ref, points, ground.noise)
    if effect is None or any(math.isinf(point.y) for point in points):
        return Target(settled(ref, limit, "not measurable", "unbounded in at least one phase").row)
    least = abs(math.log1p(gain.change))

    def state(at: Estimate) -> State:
        if -at.theta >= least and at.p_better() < KEEP_PER_LOOK:
            return "gain"
        return "flat" if at.upper(KEEP_PER_LOOK) < least and at.lower(KEEP_PER_LOOK) > -least else "open"

    def decided(number: int) -> bool:
        return number >= ground.noise.least_pairs(ref) and state(effect[0].after(number)) != "open"

    row = replace(with_bounds(ref, *effect, limit), evidence=effect[0].p_better(), note=unripe(ref, ground))
    return Target(row if row.note else replace(row, state=state(effect[0])), decided)


def _failures(gain: Expectation, ground: Ground) -> Target:
    levels = [gain.ref.level] if gain.ref.level else level_names(ground.phases)
    limit = _limit(gain)
    found = failures_of(ground.phases, levels)
    if found is None:
        return Target(settled(MetricRef(FAILURES, None, gain.ref.level), limit, "no data", "no requests").row)

    def state(now: Failures) -> State:
        fewer = -gain.change * now.before.share
        if fewer and -now.more >= fewer and now.p_better() < PER_LOOK:
            return "gain"
        return "flat" if -now.lower() < fewer or not now.before.failed else "open"

    def decided(number: int) -> bool:
        return state(found.scaled(number / max(1, pairs_done(ground.phases)))) != "open"

    row = row_of(found, gain.ref.level, limit, "" if found.before.failed else "nothing failed before the change either")
    return Target(replace(row, state=state(found), evidence=found.p_better()), decided)


def _limit(gain: Expectation) -> str:
    return f"expected {format_change(gain.change)}"
