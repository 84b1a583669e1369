"""One guarded figure of a trial, held against its limit with the bounds that the noise between phases allows.

BREACH takes two keys: evidence that the change made it worse, and a size at or beyond the limit. CLEAR takes a bound
within the limit. Whatever is neither stays open, and more phases decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row, State
from changectl.core.measuring.metrics import Guard, Metric, MetricRef
from changectl.core.trial.estimate import Estimate, Point, figure_of, fit, relative_change, worse_by
from changectl.core.trial.evidence import HARM_PER_LOOK, KEEP_PER_LOOK
from changectl.core.trial.noise import TrialNoise
from changectl.core.trial.phases import TrialPhase, pairs, pairs_done
from changectl.core.units import SHARE, format_share, format_value


@dataclass(frozen=True, slots=True)
class Ground:
    """What every figure of one look is judged on.

    Attributes:
        phases: in the order in which they ran.
        noise: what is assumed about the host.
        unequal: level -> why whole answers and throughput must not be compared there.
    """

    phases: Sequence[TrialPhase]
    noise: TrialNoise
    unequal: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Held:
    """A guarded figure before the evidence of all guards is known together.

    Attributes:
        row: as shown; "open" unless its state stands already.
        evidence: the p value that it became worse; None: the row's state stands.
        beyond: whether its size is at or beyond the limit.
        clear: whether its bound is within the limit.
        decided_by: (pairs, guards) -> whether so many pairs would decide it, if effect and noise stayed as they are.
        waits: why its evidence does not count yet; empty: it does.
    """

    row: Row
    evidence: float | None = None
    beyond: bool = False
    clear: bool = False
    decided_by: Callable[[int, int], bool] | None = None
    waits: str = ""


def settled(ref: MetricRef, limit: str, state: State, note: str = "", *, gap: bool = True) -> Held:
    """A figure that cannot be judged, or need not be."""
    return Held(Row(ref.name, ref.metric.unit, ref.level, None, None, None, limit, state, note, gap))


def obstacle(ref: MetricRef, ground: Ground) -> harm.Obstacle | None:
    """Why a figure cannot be compared in at least one pair of phases; None: it can in all."""
    if ref.metric.name in harm.WHOLE_ANSWER and (reason := ground.unequal.get(ref.level or "")):
        return harm.Obstacle("unequal work", reason, gap=False)
    for a, b in pairs(ground.phases):
        found = _between(ref, a, b)
        if found:
            return replace(found, note=f"{b} against {a}: {found.note}")
    missing = [phase for phase in ground.phases if phase.measurement.value(ref) is None]
    if not missing:
        return None
    # What the engine tells of itself while it starts is gone from the log of one that was not started for the trial.
    gap = ref.metric.per_level or any(phase.fresh for phase in missing)
    return harm.Obstacle("no data", f"nothing was measured in {', '.join(map(str, missing))}", gap)


def _between(ref: MetricRef, a: TrialPhase, b: TrialPhase) -> harm.Obstacle | None:
    if not ref.metric.per_level:
        return None
    old, new = a.measurement.level(ref.level or ""), b.measurement.level(ref.level or "")
    if old is None or new is None:
        return harm.Obstacle("no data", f'no level "{ref.level}" was measured')
    return harm.obstacle(ref.metric, (old, new))


def unripe(ref: MetricRef, ground: Ground) -> str:
    """Why the evidence on a figure does not count yet; empty: it does."""
    least = ground.noise.least_pairs(ref)
    waits = f"the noise of this host is not known: its evidence counts after {least} pairs"
    return waits if least > max(2, pairs_done(ground.phases)) else ""


def estimated(ref: MetricRef, points: Sequence[Point], noise: TrialNoise) -> tuple[Estimate, float] | None:
    """The effect, and the typical figure of A; None: one of the letters has no finite figure."""
    fitted = fit([point for point in points if math.isfinite(point.y)])
    if fitted is None:
        return None
    return noise.estimate(ref, fitted), figure_of(ref.metric, fitted.mean_a)


def relative(ref: MetricRef, margin: float, found: Estimate, before: float) -> Held:
    """A figure against its margin: a relative loss, and never harm while it is smaller than the metric's floor."""
    metric, most = ref.metric, math.log1p(margin)

    def size(theta: float) -> bool:
        return theta >= most and worse_by(metric, before, theta) >= metric.floor

    def clear(at: Estimate) -> bool:
        return not size(at.upper(KEEP_PER_LOOK))

    limit = margin_text(metric, margin)
    row = with_bounds(ref, found, before, limit)
    decided = _decision(found, clear, beyond=size(found.theta))
    return Held(row, found.p_worse(), size(found.theta), clear(found), decided)


def absolute(ref: MetricRef, guard: Guard, found: Estimate, before: float) -> Held:
    """The new configuration's own figure, with its bound, against a limit of `slo` or `accept`."""
    metric = ref.metric

    def clear(at: Estimate) -> bool:
        return guard.limit.holds(figure_of(metric, at.upper_of_b(KEEP_PER_LOOK)))

    bound, after = figure_of(metric, found.upper_of_b(KEEP_PER_LOOK)), figure_of(metric, found.mean_b)
    beyond = not guard.limit.holds(after)
    row = replace(with_bounds(ref, found, before, str(guard)), bound=bound)
    if not guard.limit.holds(before) and beyond:
        row = replace(row, note="it was beyond it before, too")
    elif not clear(found) and not beyond:
        row = replace(row, note=f"{format_value(bound, metric.unit)} is not excluded")
    return Held(row, found.p_worse(), beyond, clear(found), _decision(found, clear, beyond=beyond))


def _decision(found: Estimate, clear: Callable[[Estimate], bool], *, beyond: bool) -> Callable[[int, int], bool]:
    def decided(number: int, guards: int) -> bool:
        then = found.after(number)
        return clear(then) or (beyond and then.p_worse() * guards < HARM_PER_LOOK)

    return decided


def with_bounds(ref: MetricRef, found: Estimate, before: float, limit: str) -> Row:
    """The row of an estimate: typical figures of both configurations, and the change with the drift taken out."""
    metric = ref.metric
    change, *ends = (_shown(metric, before, theta) for theta in (found.theta, *_ends(found)))
    low, high = sorted(ends)
    after = figure_of(metric, found.mean_b)
    relative_to_before = relative_change(metric, found.theta) if metric.unit == SHARE else change
    return Row(
        ref.name, metric.unit, ref.level, before, after, relative_to_before, limit, "open", low=low, high=high
    )  # fmt: skip


def _ends(found: Estimate) -> tuple[float, float]:
    return found.lower(KEEP_PER_LOOK), found.upper(KEEP_PER_LOOK)


def _shown(metric: Metric, before: float, theta: float) -> float:
    """A change as rows show it: relative, of shares the difference."""
    change = relative_change(metric, theta)
    return before * change if metric.unit == SHARE else change


def margin_text(metric: Metric, margin: float) -> str:
    """A relative margin in words."""
    floor = f", or up to {format_value(metric.floor, metric.unit)}" if metric.floor else ""
    return f"less than {format_share(margin)} worse{floor}"
