"""The stop grace covers the drain: else running requests are cut at every stop of the trial."""

from __future__ import annotations

import math

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 62
CHECK = Check("stop_grace", "required")
MARGIN = 2.0  # seconds between the end of the drain and the kill


def check(situation: Situation) -> CheckResult:
    """The engine's drain, with the new value where that is what changes, against the manager's patience."""
    observed, manager, engine = situation.observed, situation.manager, situation.engine
    if observed is None or manager is None or engine is None:
        return CHECK.unknown("drain and stop grace are not known")
    grace = manager.stop_grace(observed.manager.show)
    drain = _drain(situation)
    if drain is None or grace is None:
        return CHECK.unknown("the drain is not known" if drain is None else "the stop grace is not known")
    patience = "no limit" if math.isinf(grace) else f"{grace:g} s"
    figure = f"drain {drain:g} s, stop grace {patience}"
    if drain > 0 and grace < drain + MARGIN:
        return CHECK.failed("the manager kills the engine while it drains", "raise TimeoutStopSec= in the unit", figure)
    return CHECK.passed("the stop grace covers the drain", figure=figure)


def _drain(situation: Situation) -> float | None:
    process = situation.observed.process if situation.observed else None
    if process is None or process.argv is None or situation.engine is None:
        return None
    setting, environ = situation.setting, process.environ or {}
    now = max(situation.engine.drain_seconds(process.argv, environ), situation.drain or 0.0)
    if setting is None or not setting.flags or situation.to is None:
        return now
    # The last occurrence of a flag counts, so the new value at the end is the command line after the change.
    return max(now, situation.engine.drain_seconds([*process.argv, f"{setting.flags[0]}={situation.to}"], environ))
