"""Gross harm, metric by metric: each figure becomes a row that says what it was held against and what came of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.judging.gates import unequal_work
from changectl.core.judging.judgement import Row, State
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import METRICS, Expectation, Guard, Metric
from changectl.core.measuring.proportions import Count, fisher
from changectl.core.units import format_change, format_value

FACTOR = 1.5
FAILURE_POINTS = 0.05
FISHER_P = 0.01
ERROR_SHARE = 0.20  # of a level's requests; more is harm without any comparison
EMPTY_SHARE = 0.05
LOOPING_SHARE = 0.05  # of the quality prompts
MINIMUM_OK = 20
MISSING_SHARE = 0.05  # of the good answers; above it a statistic speaks for the wrong requests
LATENCIES = ("ttft_user", "tpot", "e2e_user")
THROUGHPUTS = ("rps_ok", "out_tok_s")
WHOLE_ANSWER = ("e2e_user", "e2e_sent", "rps_ok", "out_tok_s")  # not comparable when the answers are longer or shorter
NO_EVIDENCE_OF_SPEED = (
    "failures",
    "kv_capacity",
    "disagreement",
    "wrong_answers",
)  # a trial that judged nothing else has judged nothing
COVERED = ("p50", "p95", "mean")  # what a limit without a statistic covers

_LARGEST = 1e300
Levels = tuple[LevelMeasurement, LevelMeasurement]


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a figure cannot be judged, and whether that leaves the whole verdict open."""

    state: State
    note: str
    gap: bool = True


def level_pairs(before: Measurement, after: Measurement) -> list[Levels]:
    """Each level before and after."""
    return list(zip(before.levels, after.levels, strict=True))


def change(before: float | None, after: float | None) -> float | None:
    """The relative change; None where there is none; infinite where it is too large for a percentage."""
    if before is None or after is None or before == 0 or math.isinf(before):
        return None
    times = after / before
    return times - 1 if times < _LARGEST else math.inf


def row(
    metric: Metric,
    statistic: str | None,
    levels: Levels | None,
    figures: tuple[float | None, float | None],
    limit: str,
    state: State,
    note: str = "",
    *,
    gap: bool = False,
) -> Row:
    """A row with the change filled in."""
    before, after = figures
    name = f"{metric.name}_{statistic}" if statistic else metric.name
    level = levels[1].name if levels else None
    return Row(name, metric.unit, level, before, after, change(before, after), limit, state, note, gap)


def guard_rows(guard: Guard, before: Measurement, after: Measurement) -> list[Row]:
    """A limit of `slo` or `accept` against the candidate, at each level that it names."""
    metric = guard.ref.metric
    if not metric.per_level:
        figures = (before.facts.get(metric.name), after.facts.get(metric.name))
        return [_held_against(guard, None, None, figures)]
    pairs = _levels(before, after, guard.ref.level)
    if not pairs:
        note = f'no level "{guard.ref.level}" was measured'
        return [row(metric, guard.ref.statistic, None, (None, None), str(guard), "no data", note, gap=True)]
    statistics = (guard.ref.statistic,) if guard.ref.statistic or not metric.statistics else COVERED
    return [_guard_row(guard, pair, statistic) for pair in pairs for statistic in statistics]


def _guard_row(guard: Guard, pair: Levels, statistic: str | None) -> Row:
    metric = guard.ref.metric
    figures = (pair[0].value(metric.name, statistic), pair[1].value(metric.name, statistic))
    reason = unequal_work(*pair) if metric.name in WHOLE_ANSWER else None
    if reason:
        return row(metric, statistic, pair, figures, str(guard), "unequal work", reason, gap=True)
    if note := _too_few_for_a_limit(pair, metric):
        return row(metric, statistic, pair, figures, str(guard), "not measurable", note, gap=True)
    if note := _too_much_missing(pair[1], metric):
        return row(metric, statistic, pair, figures, str(guard), "no data", note, gap=True)
    median = pair[1].value(metric.name, "p50") if metric.statistics else None
    if figures[1] is None and statistic in ("p95", "p99") and median is not None:
        if not guard.limit.holds(median):
            note = f"the median, {format_value(median, metric.unit)}, is beyond it already"
            return row(metric, statistic, pair, figures, str(guard), "breach", note)
        note = f"{pair[1].n} requests are too few for a {statistic.upper()}"
        return row(
            metric, statistic, pair, figures, str(guard), "not measurable", note, gap=guard.ref.statistic is not None
        )
    return _held_against(guard, statistic, pair, figures)


def _held_against(
    guard: Guard, statistic: str | None, pair: Levels | None, figures: tuple[float | None, float | None]
) -> Row:
    metric = guard.ref.metric
    if figures[1] is None:
        return row(metric, statistic, pair, figures, str(guard), "no data", "a limit needs a figure", gap=True)
    if guard.limit.holds(figures[1]):
        return row(metric, statistic, pair, figures, str(guard), "within")
    already = figures[0] is not None and not guard.limit.holds(figures[0])
    return row(
        metric, statistic, pair, figures, str(guard), "breach", "it was beyond it before, too" if already else ""
    )


def latency_row(metric: Metric, pair: Levels) -> Row:
    """The median against the factor: harm is 1.5 times worse AND beyond the floor."""
    figures = (pair[0].value(metric.name, "p50"), pair[1].value(metric.name, "p50"))
    limit = f"less than {FACTOR:g} times, or up to {format_value(metric.floor, metric.unit)} more"
    if blocked := _blocked(metric, "p50", pair, figures, limit):
        return blocked
    before, after = figures[0] or 0.0, figures[1] or 0.0
    harm = after >= FACTOR * before and after - before > metric.floor
    return row(metric, "p50", pair, figures, limit, "breach" if harm else "within")


def throughput_row(metric: Metric, pair: Levels) -> Row:
    """The rate against the factor: harm is 1.5 times lower."""
    figures = (pair[0].value(metric.name), pair[1].value(metric.name))
    limit = f"less than {FACTOR:g} times lower"
    if blocked := _blocked(metric, None, pair, figures, limit):
        return blocked
    before, after = figures[0] or 0.0, figures[1] or 0.0
    return row(metric, None, pair, figures, limit, "breach" if before >= FACTOR * after else "within")


def phase_row(metric: Metric, before: Measurement, after: Measurement) -> Row | None:
    """A figure of the whole phase that the engine tells: harm is 1.5 times worse; None: it tells in no phase."""
    old, new = before.facts.get(metric.name), after.facts.get(metric.name)
    limit = f"less than {FACTOR:g} times lower"
    if old is None and new is None:
        return None
    if old is None or new is None:
        phase = "before" if old is None else "after"
        # An old start's log may be gone; what was told before and is told no more is a gap.
        note = f"the engine did not say {phase} the change"
        return row(metric, None, None, (old, new), limit, "no data", note, gap=new is None)
    return row(metric, None, None, (old, new), limit, "breach" if old >= FACTOR * new else "within")


def _blocked(
    metric: Metric, statistic: str | None, pair: Levels, figures: tuple[float | None, float | None], limit: str
) -> Row | None:
    """The row of a figure that cannot be judged, and why; None: it can."""
    found = obstacle(metric, pair)
    return row(metric, statistic, pair, figures, limit, found.state, found.note, gap=found.gap) if found else None


def obstacle(metric: Metric, pair: Levels) -> Obstacle | None:
    """Why a metric cannot be compared between two levels; None: it can."""
    if metric.name in WHOLE_ANSWER and (reason := unequal_work(*pair)):
        return Obstacle("unequal work", reason, gap=False)
    if all(level.has_no_meaning(metric.name) for level in pair):
        return Obstacle("not defined", f"no answer has a {metric.name}", gap=False)
    for phase, level in zip(("before", "after"), pair, strict=True):
        if level.ok < MINIMUM_OK and not _all_failed_after_good(pair):
            return Obstacle("not measurable", f"{level.ok} good answers {phase}; {MINIMUM_OK} are needed")
        if note := unmeasured(level, metric):
            return Obstacle("no data", f"{phase}: {note}")
    before = pair[0].value(metric.name)
    if before == math.inf or (not metric.statistics and before == 0):
        return Obstacle("not measurable", "most requests failed before the change already")
    return None


def covered(metric: str, level: str | None, guards: Sequence[Guard]) -> bool:
    """Whether a limit takes the place of the metric's own guard at a level (None: of the whole phase)."""
    return any(guard.ref.metric.name == metric and guard.ref.level in (None, level) for guard in guards)


def unmeasured(level: LevelMeasurement, metric: Metric) -> str:
    """Why a level has no figure that speaks for its good answers; empty: it has one."""
    if note := _too_much_missing(level, metric):
        return note
    return "nothing was measured" if level.value(metric.name) is None else ""


def _too_few_for_a_limit(pair: Levels, metric: Metric) -> str:
    """Why the new configuration's figure says nothing; empty: it does. Failures themselves are what is counted."""
    good = pair[1].ok
    if metric.name == "failures" or good >= MINIMUM_OK or _all_failed_after_good(pair):
        return ""
    return f"{good} good answers after the change; {MINIMUM_OK} are needed"


def _all_failed_after_good(pair: Levels) -> bool:
    """So few good answers because so many failed is a finding, not a lack of data."""
    old, new = pair
    return old.ok >= MINIMUM_OK and new.n >= MINIMUM_OK and new.failed > new.n / 2


def _too_much_missing(level: LevelMeasurement, metric: Metric) -> str:
    missing = level.missing.get(metric.name, 0)
    return f"{missing} of {level.ok} good answers lack it" if level.ok and missing > MISSING_SHARE * level.ok else ""


def failure_row(pairs: Sequence[Levels], level: Levels | None) -> Row:
    """The share of failures, of one level or pooled: harm is 5 points more with a one-sided Fisher p below 1 %."""
    before, after = (
        Count(sum(pair[side].failed for pair in pairs), sum(pair[side].n for pair in pairs)) for side in (0, 1)
    )
    return share_row(before, after, level)


def share_row(before: Count, after: Count, level: Levels | None) -> Row:
    """A share of requests by the rule of failures, under their name."""
    metric = METRICS["failures"]
    limit = f"less than {FAILURE_POINTS * 100:g} points more, or p at least {FISHER_P:g}"
    if not before.n or not after.n:
        return row(metric, None, level, (None, None), limit, "no data", "no requests", gap=True)
    shares = (before.share, after.share)
    if shares[1] - shares[0] < FAILURE_POINTS:
        return row(metric, None, level, shares, limit, "within")
    p = fisher(before, after)
    return row(metric, None, level, shares, limit, "breach" if p < FISHER_P else "within", f"p = {p:.2g}")


def expectation_rows(expectation: Expectation, before: Measurement, after: Measurement) -> list[Row]:
    """The expected gain beside what was seen: too little evidence for a judgement, but not hidden."""
    metric = expectation.ref.metric
    statistic = expectation.ref.statistic or ("p50" if metric.statistics else None)
    limit = f"expected {format_change(expectation.change)}"
    note = "a quick trial cannot tell a gain from chance"
    if not metric.per_level:
        figures = (before.facts.get(metric.name), after.facts.get(metric.name))
        return [row(metric, statistic, None, figures, limit, "not judged", note)]
    rows = []
    for old, new in _levels(before, after, expectation.ref.level):
        figures = (old.value(metric.name, statistic), new.value(metric.name, statistic))
        rows.append(row(metric, statistic, (old, new), figures, limit, "not judged", note))
    return rows


def _levels(before: Measurement, after: Measurement, name: str | None) -> list[Levels]:
    """The levels that a reference means: the one it names, or all."""
    return [pair for pair in level_pairs(before, after) if name in (None, pair[1].name)]
