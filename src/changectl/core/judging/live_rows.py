"""What live traffic is held against, figure by figure: the default rules of gross harm, and the declared limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row, State
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import METRICS, Guard
from changectl.core.measuring.proportions import Count, lower
from changectl.core.telemetry.engine_window import EngineWindow
from changectl.core.telemetry.live_counts import TIMES, loosest, time_of
from changectl.core.units import format_change

UNLIKE = 1.5  # times as many requests a second: then their times are not compared
UNEQUAL = 0.10  # the same of tokens per request
GIVEN_UP = "given_up"  # a row's name: no metric of a load that is sent
NO_EVIDENCE = (*harm.NO_EVIDENCE_OF_SPEED, GIVEN_UP)
_STATISTIC_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


def unlike(old: LevelMeasurement, new: LevelMeasurement) -> str:
    """Why times of two observations cannot be compared; "": the traffic was alike."""
    rates = [level.n / level.window if level.window else 0.0 for level in (old, new)]
    if min(rates) * UNLIKE < max(rates):
        return f"{rates[0]:.3g} requests a second came before and {rates[1]:.3g} after"
    for what, was, now in (("input", old.tokens_in, new.tokens_in), ("output", old.tokens_out, new.tokens_out)):
        if was is None or now is None:
            return f"the engine does not count {what} tokens"
        change = (now / new.n) / (was / old.n) - 1 if was else 0.0
        if abs(change) > UNEQUAL:
            return f"a request had {format_change(change)} {what} tokens"
    return ""


def default_rows(
    pair: harm.Levels, old: Measurement, new: Measurement, service_class: str, guards: Sequence[Guard]
) -> Iterator[Row]:
    """The rules that hold without a word in the plan.

    Args:
        pair: before and after.
        old: figures of the whole phase before.
        new: and after.
        service_class: which metrics are guarded.
        guards: those that WERE held, and so take a rule's place: a limit that cannot be held is no protection.
    """
    apart = unlike(*pair)
    for name in harm.LATENCIES:
        metric = METRICS[name]
        if metric.margin(service_class) is None or harm.covered(name, None, guards):
            continue
        figures = (pair[0].value(name, "mean"), pair[1].value(name, "mean"))
        limit = f"less than {harm.FACTOR:g} times"
        if None in figures:
            yield harm.row(metric, "mean", pair, figures, limit, "no data", "the engine does not time it")
        elif apart:
            yield harm.row(metric, "mean", pair, figures, limit, "unequal work", apart)
        else:
            was, now = figures[0] or 0.0, figures[1] or 0.0
            worse = now >= harm.FACTOR * was and now - was > metric.floor
            yield harm.row(metric, "mean", pair, figures, limit, "breach" if worse else "within")
    if (capacity := harm.phase_row(METRICS["kv_capacity"], old, new)) and not harm.covered("kv_capacity", None, guards):
        yield capacity
    if not harm.covered("failures", None, guards):
        yield harm.failure_row([pair], pair)


def guard_rows(
    pair: harm.Levels, old: Measurement, new: Measurement, window: EngineWindow, guards: Sequence[Guard]
) -> list[tuple[Guard, list[Row]]]:
    """Each limit that live traffic is held against, and what came of it; of several levels' limits the loosest."""
    return [
        (guard, [_guard_row(guard, pair, window)] if guard.ref.metric.per_level else harm.guard_rows(guard, old, new))
        for guard in loosest(guards)
    ]


def _guard_row(guard: Guard, pair: harm.Levels, window: EngineWindow) -> Row:
    metric, statistic = guard.ref.metric, guard.ref.statistic
    figures = (pair[0].value(metric.name, statistic), pair[1].value(metric.name, statistic))
    if metric.name == "failures":
        return _failures_row(guard, pair, figures)
    if statistic == "mean" and figures[1] is not None:
        state: State = "within" if guard.limit.holds(figures[1]) else "breach"
        return harm.row(metric, statistic, pair, figures, str(guard), state)
    reading = time_of(window.gains, metric.name)
    share = _STATISTIC_SHARES.get(statistic or "p95")
    if reading is None or not reading.buckets or share is None:
        note = "live traffic and the engine's page do not tell it"
        return harm.row(metric, statistic, pair, (None, None), str(guard), "not measurable", note, gap=True)
    return _percentile_row(guard, pair, window, share)


def _failures_row(guard: Guard, pair: harm.Levels, figures: tuple[float | None, float | None]) -> Row:
    """One failure of a few requests is no proof of a share: beyond the limit is what chance does not explain."""
    count = Count(pair[1].failed, pair[1].n)
    if guard.limit.holds(count.share):
        return harm.row(guard.ref.metric, None, pair, figures, str(guard), "within")
    if not guard.limit.holds(lower(count, harm.FISHER_P)):
        return harm.row(guard.ref.metric, None, pair, figures, str(guard), "breach")
    note = f"{count.failed:.0f} of {count.n:.0f} may be chance"
    return harm.row(guard.ref.metric, None, pair, figures, str(guard), "not measurable", note, gap=True)


def _percentile_row(guard: Guard, pair: harm.Levels, window: EngineWindow, share: float) -> Row:
    """Beyond the limit for sure, within it for sure, or in the bucket that holds it."""
    metric, statistic = guard.ref.metric, guard.ref.statistic or "p95"
    name = next(name for name in TIMES[metric.name] if name in window.gains)
    bound = window.percentile(name, share)
    if bound is None:
        return harm.row(metric, statistic, pair, (None, None), str(guard), "no data", "nothing was timed", gap=True)
    if bound.at_least >= guard.limit.value:  # what lies above an edge is larger than it
        note = "at the least, by the engine's own histogram"
        return harm.row(metric, statistic, pair, (None, bound.at_least), str(guard), "breach", note)
    figures = (None, bound.at_most)
    if bound.at_most is not None and guard.limit.holds(bound.at_most):
        note = "at the most, by the engine's own histogram"
        return harm.row(metric, statistic, pair, figures, str(guard), "within", note)
    note = "the limit lies within one bucket of the engine's histogram"
    return harm.row(metric, statistic, pair, figures, str(guard), "not measurable", note, gap=True)


def given_up_row(pair: harm.Levels, before: Count | None, after: Count | None) -> list[Row]:
    """The share of requests that clients gave up, by the rule of failures; none where the engine does not count it."""
    if before is None or after is None:
        return []
    return [replace(harm.share_row(before, after, pair), metric=GIVEN_UP)]


def answers_row() -> Row:
    """That a change which may change answers is not shown to leave them as they are."""
    note = "the changed parameter may change answers, and live traffic does not show answers"
    return harm.row(METRICS["disagreement"], None, None, (None, None), "none", "no data", note, gap=True)
