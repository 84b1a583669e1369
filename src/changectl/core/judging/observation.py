"""A change judged by live traffic alone, where no load may be sent: gross harm, none of it seen, or no telling.

What users send is not the same before and after, so little is compared: the share of failures, and the mean of what the
engine itself timed, where about as many requests of about the same size came. Nothing here ever says "improved".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core.judging import flagging, harm
from changectl.core.judging.conditions import Difference
from changectl.core.judging.gates import conditions_apart
from changectl.core.judging.judgement import HardEvent, Judgement, Reason, Row, Verdict
from changectl.core.judging.live_rows import NO_EVIDENCE, answers_row, default_rows, given_up_row, guard_rows, unlike
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import Expectation, Guard
from changectl.core.measuring.proportions import Count
from changectl.core.telemetry.engine_window import EngineWindow
from changectl.core.telemetry.live_counts import TIMES, ended, given_up, time_of
from changectl.core.units import format_change

LIVE = "live"  # what stands where a trial has the name of a level


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
        return ended(self.window.gain)

    @property
    def given_up(self) -> Count | None:
        """Requests that came to an end of any kind, and those of them that clients gave up; None: not counted."""
        return given_up(self.window.gain)

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
    undeclared: Sequence[Difference] = (),
    unread: Sequence[str] = (),
    changes_answers: bool = False,
) -> Judgement:
    """Judge what was seen of the new configuration by what was seen of the saved one.

    Args:
        before: the saved configuration, long enough to compare with.
        after: the new one.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        guards: the limits in force; a percentile is held against one by the edges of the engine's own histogram.
        expect: gains that the plan expects: shown, not judged.
        undeclared: conditions that differ and are not the declared change.
        unread: the names of conditions that were not read before or after.
        changes_answers: whether the changed parameter may change answers, which no counter shows.
    """
    gaps = [*too_little(before, "before the change"), *too_little(after, "after the change")]
    harms = [Reason(event.code, event.text) for event in after.events]
    flags = (*_flags(before, "before the change"), *_flags(after, "after the change"), *before.notes, *after.notes)
    old, new = before.measurement, after.measurement
    if (apart := conditions_apart(undeclared, unread)) and not harms:  # an event needs no comparison
        return Judgement(Verdict.INVALID, tuple(apart), (), flags)
    if gaps or not (old.levels and new.levels):
        return Judgement(Verdict.REGRESSED if harms else Verdict.INCONCLUSIVE, tuple(harms or gaps), (), flags)
    pair = (old.levels[0], new.levels[0])
    held = guard_rows(pair, old, new, after.window, guards)
    decided = [guard for guard, rows in held if all(row.state in ("within", "breach") for row in rows)]
    rows = [*default_rows(pair, old, new, service_class, decided), *(row for _, rows in held for row in rows)]
    rows += given_up_row(pair, before.given_up, after.given_up)
    rows += [answers_row()] if changes_answers else []
    harms += [Reason("limit_breached", str(row)) for row in rows if row.state == "breach"]
    shown = (*rows, *_expected(pair, expect))
    if harms:
        return Judgement(Verdict.REGRESSED, tuple(harms), shown, flags)
    gaps = [Reason("no_evidence", str(row)) for row in rows if row.gap]
    judged = [row for row in rows if row.state == "within" and row.metric not in NO_EVIDENCE]
    if not judged:
        why = unlike(*pair) or "the engine times nothing that is guarded"
        gaps.append(Reason("nothing_judged", f"only failures could be compared: {why}"))
    if gaps:
        return Judgement(Verdict.INCONCLUSIVE, tuple(gaps), shown, flags)
    text = f"no gross harm was seen in {pair[1].n} live requests: {len(judged) + 1} figures are within their limits"
    return Judgement(Verdict.NO_GROSS_HARM, (Reason("no_gross_harm", text),), shown, flags)


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
