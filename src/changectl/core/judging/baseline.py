"""Is a measurement of the saved configuration one to compare with? Asked before anything is changed.

Whatever is named here would leave the whole trial without a verdict, however good or bad the change is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from changectl.core.judging import harm
from changectl.core.judging.conditions import must_be_known
from changectl.core.judging.exactness import shortcomings
from changectl.core.judging.gates import shortfalls
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.metrics import METRICS, Expectation, Guard, Metric
from changectl.core.units import format_share

BASELINE_INVALID = "baseline_invalid"  # how a step ends that found nothing to compare with
MOST_FAILED = 0.5  # from here on, a median is infinite

_QUIETER = "measure while this host is quieter, or with fewer streams or a lower rate"
_EXACTER = "let another host send the load (`caller`), or free this one's processors of other work"
_ADVICE = {
    "baseline_failed": "see what the load generator says, and whether the service answers as it should",
    "baseline_disturbed": "find out why that happened on the saved configuration, and mend it first",
    "baseline_conditions_unknown": "let changectl read that, or there is nothing to compare the new configuration with",
    "baseline_generator_late": _QUIETER,
    "baseline_generator_inexact": _EXACTER,
    "baseline_generator_untested": f"see why: the host that sends the load takes connections from itself (127.0.0.1), "
    f"and processes may be forked there; or {_EXACTER}",
    "baseline_rate_not_reached": _QUIETER,
    "baseline_streams_not_reached": _QUIETER,
    "baseline_level_cut_short": "see what the load generator says",
    "baseline_sender_full": "give the user who sends more open files and ports, or measure at a lower rate",
    "baseline_too_few": "write more `requests`, or a longer time in `seconds`, under `conditions`",
    "baseline_failures": "find out why they fail and mend that first; where the plan is what mends it, let it say so: "
    "`expect: {failures: -50%}`",
    "baseline_empty": "find out why, or write `expect: empty` with those requests of the workload that get no text",
    "baseline_no_figures": "see which of its answers come without token counts, or give the metric a limit (`slo`, "
    "`accept`)",
}


def unusable(
    baseline: Measurement,
    *,
    service_class: str = "interactive",
    guards: Sequence[Guard] = (),
    expect: Sequence[Expectation] = (),
    hard_events: Sequence[HardEvent] = (),
    unread_conditions: Sequence[str] = (),
) -> list[Reason]:
    """Why a measurement of the saved configuration is none to compare with; empty: it is one.

    Args:
        baseline: the measurement.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        guards: the limits in force; they take the place of the default guard of their metric, which needs a baseline.
        expect: the gains that the plan expects: one of fewer failures makes failures something to compare with.
        hard_events: restarts, memory exhaustion and the like seen in it.
        unread_conditions: what could not be read meanwhile; settings, files and model have to be known.
    """
    reasons = [Reason("baseline_failed", problem) for problem in baseline.invalid]
    reasons += [Reason(f"baseline_{code}", text) for code, text in shortcomings(baseline)]
    reasons += [Reason("baseline_disturbed", event.text) for event in hard_events]
    reasons += [
        Reason("baseline_conditions_unknown", f"not known while it was measured: {name}")
        for name in unread_conditions
        if must_be_known(name)
    ]
    mends_failures = any(gain.ref.metric.name == "failures" for gain in expect)
    for level in baseline.levels:
        reasons += _less_load(level)
        reasons += _failing(level, mends_failures) or _too_few(level) or _without_figures(level, service_class, guards)
    if not baseline.levels and not reasons:
        reasons.append(Reason("baseline_failed", "no level was measured"))
    return reasons


def advice(reasons: Sequence[Reason]) -> str:
    """What to do about it, each piece once."""
    return "; ".join(dict.fromkeys(_ADVICE[reason.code] for reason in reasons))


def _less_load(level: LevelMeasurement) -> list[Reason]:
    said = f"the load generator did not keep up at {level.name}"
    return [Reason(f"baseline_{code}", f"{said}: {text}") for code, text in shortfalls(level)]


def _failing(level: LevelMeasurement, expected: bool) -> list[Reason]:
    failed, empty = level.failure_share or 0.0, level.empty_share or 0.0
    limit = MOST_FAILED if expected else harm.ERROR_SHARE
    if empty > harm.EMPTY_SHARE and not expected:
        text = f"{format_share(empty)} of the answers were empty at {level.name}"
        return [Reason("baseline_empty", f"{text} (limit {format_share(harm.EMPTY_SHARE)})")]
    if failed <= limit:
        return []
    classes = ", ".join(f"{count} {name}" for name, count in level.failures.items())
    text = f"{format_share(failed)} of the requests failed at {level.name} (limit {format_share(limit)}): {classes}"
    return [Reason("baseline_failures", text)]


def _too_few(level: LevelMeasurement) -> list[Reason]:
    if level.ok >= harm.MINIMUM_OK:
        return []
    text = f"{level.ok} good answers to {level.n} requests at {level.name}; {harm.MINIMUM_OK} are needed"
    return [Reason("baseline_too_few", text)]


def _without_figures(level: LevelMeasurement, service_class: str, guards: Sequence[Guard]) -> list[Reason]:
    notes = [(metric.name, harm.unmeasured(level, metric)) for metric in _guarded(level, service_class, guards)]
    return [Reason("baseline_no_figures", f"{name} at {level.name}: {note}") for name, note in notes if note]


def _guarded(level: LevelMeasurement, service_class: str, guards: Sequence[Guard]) -> Iterator[Metric]:
    for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
        metric = METRICS[name]
        judged = metric.margin(service_class) is not None and not harm.covered(name, level.name, guards)
        if judged and not level.has_no_meaning(name):
            yield metric
