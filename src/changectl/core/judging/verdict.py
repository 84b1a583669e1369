"""The verdict on a quick trial (one phase before, one after): gross harm or none, never an improvement.

Nothing passes for lack of data: a guarded figure that is missing leaves the verdict inconclusive.
"""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.judging import flagging, harm
from changectl.core.judging.conditions import Difference
from changectl.core.judging.gates import not_comparable, unequal_work
from changectl.core.judging.gross_harm import require_class, rows_of
from changectl.core.judging.hard_harm import at_once, too_few
from changectl.core.judging.judgement import HardEvent, Judgement, Reason, Row, Verdict
from changectl.core.judging.quality import breached
from changectl.core.judging.quality_quick import quality_rows
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.metrics import Expectation, Guard

__all__ = ["HardEvent", "Judgement", "Reason", "Row", "Verdict", "judge_quick"]


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
    changes_answers: bool = False,
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
        changes_answers: whether the changed parameter may change answers, so that they have to be judged.

    Raises:
        ValueError: an unknown class of service.
    """
    require_class(service_class)
    flags = (*_flags(before, after), *flagging.unread(unread_conditions), *observations)
    if invalid := not_comparable(before, after, undeclared_differences, hard_events, unread_conditions):
        return Judgement(Verdict.INVALID, tuple(invalid), (), flags)
    guards = (*slo, *accept)
    answers = quality_rows(before, after, guards, required=changes_answers)
    rows = (*rows_of(before, after, service_class, guards), *answers)
    shown = (*rows, *(row for expectation in expect for row in harm.expectation_rows(expectation, before, after)))
    verdict, reasons = _decide(before, after, rows, hard_events)
    return Judgement(verdict, tuple(reasons), shown, flags)


def _decide(
    before: Measurement, after: Measurement, rows: Sequence[Row], hard_events: Sequence[HardEvent]
) -> tuple[Verdict, list[Reason]]:
    pairs = harm.level_pairs(before, after)
    harms, gaps = at_once(before, after, hard_events)
    harms += [breached(row) for row in rows if row.state == "breach"]
    if harms:
        return Verdict.REGRESSED, harms
    judged = [row for row in rows if row.state in ("within", "breach") and row.metric not in harm.NO_EVIDENCE_OF_SPEED]
    unequal = [text for old, new in pairs if (text := unequal_work(old, new))]
    if unequal and not judged:
        return Verdict.INVALID, [Reason("unequal_work", text) for text in unequal]
    gaps += [*too_few(before, "before the change"), *too_few(after, "after the change")]
    gaps += [Reason("no_evidence", str(row)) for row in rows if row.gap]
    if not judged and not gaps:
        gaps = [Reason("nothing_judged", "no guarded figure could be judged")]
    if gaps:
        return Verdict.INCONCLUSIVE, gaps
    return Verdict.NO_GROSS_HARM, [Reason("no_gross_harm", f"{len(judged)} figures are within their limits")]


def _flags(before: Measurement, after: Measurement) -> tuple[Reason, ...]:
    flags: list[Reason] = []
    for phase, measurement in (("before", before), ("after", after)):
        for level in measurement.levels:
            flags += flagging.of_level(level, f"{phase} the change")
    for new in after.levels:
        old = before.level(new.name)
        if old and (text := unequal_work(old, new)):
            flags.append(flagging.unequal(text))
    return tuple(flags)
