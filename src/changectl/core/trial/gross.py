"""Gross harm of a trial, at any look: the quick trial's own rule, in more than half of the pairs.

One phase that went wrong is no harm of the change: it makes the noise larger, and is reported. Failures are counted
over all pairs together, where more than half of all levels of all pairs have them: a burst of a few seconds lies in one
level of one phase. What a limit of `slo` or `accept` allows is no gross harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from changectl.core.judging import harm
from changectl.core.judging.gross_harm import rows_of
from changectl.core.judging.judgement import Row
from changectl.core.measuring.metrics import Guard, parse_metric
from changectl.core.trial.phases import Pair, TrialPhase, level_names, of_letter, pairs, pooled_level

Place = tuple[str, str | None]  # a metric (with its statistic) and a level


def gross_harm(phases: Sequence[TrialPhase], service_class: str, guards: Sequence[Guard]) -> list[Row]:
    """The rows of what is grossly worse, by metric and level; empty: nothing."""
    couples = pairs(phases)
    breaches: dict[Place, list[Row]] = {}
    for couple in couples:
        for row in _breaches(couple, service_class, guards):
            breaches.setdefault((row.metric, row.level), []).append(row)
    rows = [_counted(found, len(couples)) for found in breaches.values() if 2 * len(found) > len(couples)]
    return [*rows, *_failures(phases, guards)]


def _breaches(couple: Pair, service_class: str, guards: Sequence[Guard]) -> list[Row]:
    before, after = (phase.measurement for phase in couple)
    rows = [row for row in rows_of(before, after, service_class, ()) if row.state == "breach"]
    return [row for row in rows if row.metric != "failures" and not _allowed(row, couple, guards)]


def _allowed(row: Row, couple: Pair, guards: Sequence[Guard]) -> bool:
    """Whether limits take the factor's place there, and hold."""
    name = parse_metric(row.metric).metric.name
    own = [guard for guard in guards if guard.ref.metric.name == name and guard.ref.level in (None, row.level)]
    limits = [one for guard in own for one in harm.guard_rows(guard, couple[0].measurement, couple[1].measurement)]
    return bool(own) and not any(one.state == "breach" and one.level == row.level for one in limits)


def _counted(found: Sequence[Row], couples: int) -> Row:
    return replace(found[-1], note=f"in {len(found)} of {couples} pairs") if couples > 1 else found[-1]


def _failures(phases: Sequence[TrialPhase], guards: Sequence[Guard]) -> list[Row]:
    saved, new = of_letter(phases, "A"), of_letter(phases, "B")
    if not saved or not new or not _everywhere(phases, guards):
        return []
    levels = [(pooled_level(saved, name), pooled_level(new, name)) for name in level_names(phases)]
    rows = [harm.failure_row([pair], pair) for pair in levels]
    named = {guard.ref.level for guard in guards if guard.ref.metric.name == "failures"}
    others = [pair for pair in levels if pair[1].name not in named]
    rows += [harm.failure_row(others, None)] if len(others) > 1 else []
    return [row for row in rows if row.state == "breach" and not _failures_allowed(row, guards)]


def _everywhere(phases: Sequence[TrialPhase], guards: Sequence[Guard]) -> bool:
    measured = [(before.measurement, after.measurement) for before, after in pairs(phases)]
    rows = [harm.failure_row([pair], pair) for couple in measured for pair in harm.level_pairs(*couple)]
    grown = [row for row in rows if row.state == "breach" and not _failures_allowed(row, guards)]
    return 2 * len(grown) > len(rows)


def _failures_allowed(row: Row, guards: Sequence[Guard]) -> bool:
    own = [guard for guard in guards if guard.ref.metric.name == "failures" and guard.ref.level in (None, row.level)]
    return bool(own) and all(row.after is not None and guard.limit.holds(row.after) for guard in own)
