"""Where gross harm of one measurement against another is looked for: by the limits, and else by the factors."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.metrics import CLASSES, METRICS, Guard


def require_class(service_class: str) -> None:
    """Raises ValueError for a class of service that is not known."""
    if service_class not in CLASSES:
        raise ValueError(f'there is no class "{service_class}"; known: {", ".join(CLASSES)}')


def rows_of(before: Measurement, after: Measurement, service_class: str, guards: Sequence[Guard]) -> tuple[Row, ...]:
    """Every guarded figure held against its limit, or against the factor where no limit takes its place."""
    rows = [row for guard in guards if not guard.of_answers for row in harm.guard_rows(guard, before, after)]
    pairs = harm.level_pairs(before, after)
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
