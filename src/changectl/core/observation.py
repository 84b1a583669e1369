"""A change judged by live traffic alone, where no load may be sent: gross harm, none of it seen, or no telling.

What users send is not the same before and after, so little is compared: the share of failures, and the mean of what the
engine itself timed, where about as many requests of about the same size came. Nothing here ever says "improved".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core import flagging, harm
from changectl.core.engine_window import EngineWindow
from changectl.core.judgement import HardEvent, Judgement, Reason, Row, State, Verdict
from changectl.core.live_counts import TIMES, time_of
from changectl.core.measured import LevelMeasurement, Measurement
from changectl.core.metrics import METRICS, Expectation, Guard
from changectl.core.proportions import Count, lower
from changectl.core.units import format_change

LIVE = "live"  # what stands where a trial has the name of a level
UNLIKE = 1.5  # times as many requests a second: then their times are not compared
UNEQUAL = 0.10  # the same of tokens per request
_STATISTIC_SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Observation:
    """What an instance did in one time of live traffic.

    Attributes:
        seconds: how long it was observed.
        window: by how much the engine's own counters and times grew.
        facts: figures of the whole phase, as in a measurement.
        events: what needs no statistics.
        notes: what a reader has to know.
    """

    seconds: float
    window: EngineWindow
    facts: Mapping[str, float | None] = field(default_factory=dict)
    events: tuple[HardEvent, ...] = ()
    notes: tuple[Reason, ...] = ()

    @property
    def ended(self) -> Count | None:
        """Requests that ended, and those of them that failed; None: the engine does not count them."""
        good, failed = self.window.gain("requests_ok"), self.window.gain("requests_failed")
        failed = self.window.gain("http_errors") if failed is None else failed
        return None if good is None or failed is None else Count(failed, good + failed)

    @property
    def measurement(self) -> Measurement:
        """The same as records and reports have measurements; without a level where nothing was counted."""
        return Measurement(() if self.ended is None else (self._level(self.ended),), self.facts)

    def _level(self, ended: Count) -> LevelMeasurement:
        good, failed = round(ended.n - ended.failed), round(ended.failed)
        means = {metric: reading.mean for metric in TIMES if (reading := time_of(self.window.gains, metric))}
        tokens_in, tokens_out = (self.window.gain(name) for name in ("prompt_tokens", "generated_tokens"))
        return LevelMeasurement(
            name=LIVE,
            n=good + failed,
            ok=good,
            failures={"engine": failed} if failed else {},
            latency={metric: {"mean": mean} for metric, mean in means.items() if mean is not None},
            window=self.seconds,
            rps_ok=good / self.seconds,
            out_tok_s=None if tokens_out is None else tokens_out / self.seconds,
            tokens_in=None if tokens_in is None else round(tokens_in),
            tokens_out=None if tokens_out is None else round(tokens_out),
            cache_hit=self.window.share("cache_hits", "cache_queries"),
        )


def too_little(seen: Observation, when: str) -> list[Reason]:
    """Why nothing can be told from an observation; empty: something can. `when` says which it is."""
    if seen.ended is None:
        names = ("requests_ok", "requests_failed")
        why = next((text for name in names if (text := seen.window.missing.get(name))), "not exposed")
        return [Reason("not_counted", f"the engine's own count of requests could not be read {when}: {why}")]
    if seen.ended.n >= harm.MINIMUM_OK:
        return []
    return [Reason("too_few", f"{seen.ended.n:.0f} live requests ended {when}; {harm.MINIMUM_OK} are needed")]


def judge_observed(
    before: Observation,
    after: Observation,
    *,
    service_class: str = "interactive",
    guards: Sequence[Guard] = (),
    expect: Sequence[Expectation] = (),
) -> Judgement:
    """Judge what was seen of the new configuration by what was seen of the saved one.

    Args:
        before: the saved configuration, long enough to compare with.
        after: the new one.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        guards: the limits in force; a percentile is held against one by the edges of the engine's own histogram.
        expect: gains that the plan expects: shown, not judged.
    """
    gaps = [*too_little(before, "before the change"), *too_little(after, "after the change")]
    harms = [Reason(event.code, event.text) for event in after.events]
    flags = (*_flags(before, "before the change"), *_flags(after, "after the change"), *before.notes, *after.notes)
    old, new = before.measurement, after.measurement
    if gaps or not (old.levels and new.levels):
        return Judgement(Verdict.REGRESSED if harms else Verdict.INCONCLUSIVE, tuple(harms or gaps), (), flags)
    pair = (old.levels[0], new.levels[0])
    rows = [*_default_rows(pair, old, new, service_class, guards), *_guard_rows(pair, after, guards)]
    harms += [Reason("limit_breached", str(row)) for row in rows if row.state == "breach"]
    shown = (*rows, *_expected(pair, expect))
    if harms:
        return Judgement(Verdict.REGRESSED, tuple(harms), shown, flags)
    gaps = [Reason("no_evidence", str(row)) for row in rows if row.gap]
    judged = [row for row in rows if row.state == "within" and row.metric not in harm.NO_EVIDENCE_OF_SPEED]
    if not judged:
        why = unlike(*pair) or "the engine times nothing that is guarded"
        gaps.append(Reason("nothing_judged", f"only failures could be compared: {why}"))
    if gaps:
        return Judgement(Verdict.INCONCLUSIVE, tuple(gaps), shown, flags)
    text = f"no gross harm was seen in {pair[1].n} live requests: {len(judged) + 1} figures are within their limits"
    return Judgement(Verdict.NO_GROSS_HARM, (Reason("no_gross_harm", text),), shown, flags)


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


def _default_rows(
    pair: harm.Levels, old: Measurement, new: Measurement, service_class: str, guards: Sequence[Guard]
) -> Iterator[Row]:
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


def _guard_rows(pair: harm.Levels, after: Observation, guards: Sequence[Guard]) -> Iterator[Row]:
    for guard in guards:
        metric, statistic = guard.ref.metric, guard.ref.statistic
        figures = (pair[0].value(metric.name, statistic), pair[1].value(metric.name, statistic))
        if metric.name == "failures":
            yield _failures_row(guard, pair, figures)
            continue
        if statistic == "mean" and figures[1] is not None:
            state: State = "within" if guard.limit.holds(figures[1]) else "breach"
            yield harm.row(metric, statistic, pair, figures, str(guard), state)
            continue
        reading = time_of(after.window.gains, metric.name)
        share = _STATISTIC_SHARES.get(statistic or "p95")
        if reading is None or not reading.buckets or share is None:
            note = "live traffic and the engine's page do not tell it"
            yield harm.row(metric, statistic, pair, (None, None), str(guard), "not judged", note)
            continue
        yield _percentile_row(guard, pair, after, share)


def _failures_row(guard: Guard, pair: harm.Levels, figures: tuple[float | None, float | None]) -> Row:
    """One failure of a few requests is no proof of a share: beyond the limit is what chance does not explain."""
    count = Count(pair[1].failed, pair[1].n)
    if guard.limit.holds(count.share):
        return harm.row(guard.ref.metric, None, pair, figures, str(guard), "within")
    if not guard.limit.holds(lower(count, harm.FISHER_P)):
        return harm.row(guard.ref.metric, None, pair, figures, str(guard), "breach")
    note = f"{count.failed:.0f} of {count.n:.0f} may be chance"
    return harm.row(guard.ref.metric, None, pair, figures, str(guard), "not measurable", note, gap=True)


def _percentile_row(guard: Guard, pair: harm.Levels, after: Observation, share: float) -> Row:
    """Beyond the limit for sure, within it for sure, or in the bucket that holds it."""
    metric, statistic = guard.ref.metric, guard.ref.statistic or "p95"
    name = next(name for name in TIMES[metric.name] if name in after.window.gains)
    bound = after.window.percentile(name, share)
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
    return harm.row(metric, statistic, pair, figures, str(guard), "not measurable", note)


def _expected(pair: harm.Levels, expect: Sequence[Expectation]) -> Iterator[Row]:
    for one in expect:
        metric, statistic = one.ref.metric, "mean" if one.ref.metric.statistics else None
        figures = (pair[0].value(metric.name, statistic), pair[1].value(metric.name, statistic))
        note = "live traffic cannot tell a gain from chance"
        yield harm.row(metric, statistic, pair, figures, f"expected {format_change(one.change)}", "not judged", note)


def _flags(seen: Observation, when: str) -> list[Reason]:
    ended = seen.ended
    return [] if ended is None else flagging.of_share(ended, "live requests", when)


__all__ = ["LIVE", "Observation", "judge_observed", "too_little", "unlike"]
