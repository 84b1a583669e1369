"""The verdict on a quick trial (one phase before, one after): gross harm or none, never an improvement.

Nothing passes for lack of data: a guarded figure that is missing leaves the verdict inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core import harm
from changectl.core.conditions import Difference, must_be_known
from changectl.core.gates import is_late, not_comparable, unequal_work
from changectl.core.judgement import HardEvent, Judgement, Reason, Row, Verdict
from changectl.core.measured import LevelMeasurement, Measurement
from changectl.core.metrics import CLASSES, METRICS, Expectation, Guard
from changectl.core.units import format_share

__all__ = ["HardEvent", "Judgement", "Reason", "Row", "Verdict", "judge_quick"]

FLAGGED_FAILURES = 0.01
NO_EVIDENCE_OF_SPEED = ("failures", "kv_capacity")  # a trial that judged nothing else has judged nothing


def judge_quick(
    before: Measurement,
    after: Measurement,
    *,
    service_class: str = "interactive",
    slo: Sequence[Guard] = (),
    accept: Sequence[Guard] = (),
    expect: Sequence[Expectation] = (),
    undeclared_differences: Sequence[Difference] = (),
    unread_conditions: Sequence[str] = (),
    hard_events: Sequence[HardEvent] = (),
    observations: Sequence[Reason] = (),
) -> Judgement:
    """Judge one phase on the saved configuration against one on the new configuration.

    A limit of `slo` or `accept` takes the place of the factor for its metric (any statistic of it), at the levels that
    it names; where both name the metric, both must hold.

    Args:
        before: the phase on the saved configuration.
        after: the phase on the new one.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        slo: absolute limits of the service.
        accept: absolute limits of the plan.
        expect: gains that the plan expects: shown, not judged.
        undeclared_differences: what else differed between the phases; any makes the comparison invalid.
        unread_conditions: what at least one phase could not read; settings, files and model have to be known.
        hard_events: restarts, memory exhaustion and the like seen in a phase.
        observations: what else a reader of the verdict has to know; judged by nobody.

    Raises:
        ValueError: an unknown class of service.
    """
    if service_class not in CLASSES:
        raise ValueError(f'there is no class "{service_class}"; known: {", ".join(CLASSES)}')
    flags = (*_flags(before, after), *_unread(unread_conditions), *observations)
    if invalid := not_comparable(before, after, undeclared_differences, hard_events, unread_conditions):
        return Judgement(Verdict.INVALID, tuple(invalid), (), flags)
    rows = _rows(before, after, service_class, (*slo, *accept))
    shown = (*rows, *(row for expectation in expect for row in harm.expectation_rows(expectation, before, after)))
    verdict, reasons = _decide(before, after, rows, hard_events)
    return Judgement(verdict, tuple(reasons), shown, flags)


def _decide(
    before: Measurement, after: Measurement, rows: Sequence[Row], hard_events: Sequence[HardEvent]
) -> tuple[Verdict, list[Reason]]:
    harms, gaps = _hard(before, after, hard_events)
    harms += [Reason("limit_breached", str(row)) for row in rows if row.state == "breach"]
    if harms:
        return Verdict.REGRESSED, harms
    judged = [row for row in rows if row.state in ("within", "breach") and row.metric not in NO_EVIDENCE_OF_SPEED]
    unequal = [text for old, new in _pairs(before, after) if (text := unequal_work(old, new))]
    if unequal and not judged:
        return Verdict.INVALID, [Reason("unequal_work", text) for text in unequal]
    gaps += _too_few(before, "before") + _too_few(after, "after")
    gaps += [Reason("no_evidence", str(row)) for row in rows if row.gap]
    if not judged and not gaps:
        gaps = [Reason("nothing_judged", "no guarded figure could be judged")]
    if gaps:
        return Verdict.INCONCLUSIVE, gaps
    return Verdict.NO_GROSS_HARM, [Reason("no_gross_harm", f"{len(judged)} figures are within their limits")]


def _pairs(before: Measurement, after: Measurement) -> list[harm.Levels]:
    return list(zip(before.levels, after.levels, strict=True))


def _rows(before: Measurement, after: Measurement, service_class: str, guards: Sequence[Guard]) -> tuple[Row, ...]:
    rows = [row for guard in guards for row in harm.guard_rows(guard, before, after)]
    pairs = _pairs(before, after)
    for pair in pairs:
        for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
            metric = METRICS[name]
            if metric.margin(service_class) is None or harm.covered(name, pair[1].name, guards):
                continue
            rows.append((harm.latency_row if metric.statistics else harm.throughput_row)(metric, pair))
    for metric in METRICS.values():
        if not metric.per_level and metric.margin(service_class) and not harm.covered(metric.name, None, guards):
            rows += [row] if (row := harm.phase_row(metric, before, after)) else []
    open_pairs = [pair for pair in pairs if not harm.covered("failures", pair[1].name, guards)]
    rows += [harm.failure_row([pair], pair) for pair in open_pairs]
    if len(open_pairs) > 1:
        rows.append(harm.failure_row(open_pairs, None))
    return tuple(rows)


def _hard(
    before: Measurement, after: Measurement, hard_events: Sequence[HardEvent]
) -> tuple[list[Reason], list[Reason]]:
    """What needs no statistics; a baseline that was no better makes it a gap instead of harm."""
    harms = [Reason(event.code, event.text) for event in hard_events if event.phase == "B"]
    gaps: list[Reason] = []
    for old, new in _pairs(before, after):
        for code, words, limit, was, now in (
            ("error_share", "requests failed", harm.ERROR_SHARE, old.failure_share, new.failure_share),
            ("empty_answers", "answers were empty", harm.EMPTY_SHARE, old.empty_share, new.empty_share),
        ):
            if now is None or now <= limit:
                continue
            text = f"{format_share(now)} of the {words} at {new.name} (limit {format_share(limit)})"
            if was is not None and was > limit:
                gaps.append(Reason(f"baseline_{code}", f"{text}, and {format_share(was)} before the change"))
            else:
                harms.append(Reason(code, text))
    return harms, gaps


def _too_few(measurement: Measurement, phase: str) -> list[Reason]:
    return [
        Reason("too_few", f"{level.ok} good answers at {level.name} {phase} the change; {harm.MINIMUM_OK} are needed")
        for level in measurement.levels
        if level.ok < harm.MINIMUM_OK
    ]


def _flags(before: Measurement, after: Measurement) -> tuple[Reason, ...]:
    flags: list[Reason] = []
    for phase, measurement in (("before", before), ("after", after)):
        for level in measurement.levels:
            flags += _level_flags(level, phase)
    for new in after.levels:
        old = before.level(new.name)
        if old and (text := unequal_work(old, new)):
            flags.append(Reason("unequal_work", f"{text}: whole answers and throughput are not judged there"))
    return tuple(flags)


def _unread(names: Sequence[str]) -> list[Reason]:
    if not (others := [name for name in names if not must_be_known(name)]):
        return []
    text = f"not known in both measurements, so not shown to be equal: {', '.join(others)}"
    return [Reason("conditions_unknown", text)]


def _level_flags(level: LevelMeasurement, phase: str) -> list[Reason]:
    flags = []
    share = level.failure_share
    if share is not None and share > FLAGGED_FAILURES:
        classes = ", ".join(f"{count} {name}" for name, count in level.failures.items())
        text = f"{format_share(share)} of the requests failed at {level.name} {phase} the change: {classes}"
        flags.append(Reason("failures_above_1_percent", text))
    if level.cache_hit is None and level.ok:
        flags.append(
            Reason("cache_unknown", f"the server did not say at {level.name} {phase} the change what was cached")
        )
    if is_late(level, 0.001, 0.02):
        flags.append(Reason("generator_late", f"the load generator was busy at {level.name} {phase} the change"))
    return flags
