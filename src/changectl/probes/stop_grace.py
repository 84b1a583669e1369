"""The stop grace covers the drain: else running requests are cut at every stop of the trial."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.stopping import MARGIN, drain, patience

ORDER = 62
CHECK = Check("stop_grace", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """The engine's drain, with the new value where that is what changes, against the manager's patience."""
    observed, manager, engine = situation.observed, situation.manager, situation.engine
    if observed is None or manager is None or engine is None:
        return CHECK.unknown("drain and stop grace are not known")
    grace = manager.stop_grace(observed.manager.show)
    drained = drain(engine, observed.process, situation.drain, situation.setting, situation.to)
    if drained is None or grace is None:
        return CHECK.unknown("the drain is not known" if drained is None else "the stop grace is not known")
    limit = patience(grace, drained)
    figure = f"drain {drained:g} s, killed after {limit:g} s"
    if drained > 0 and limit < drained + MARGIN:
        return CHECK.failed("the manager kills the engine while it drains", "raise TimeoutStopSec= in the unit", figure)
    return CHECK.passed("the stop grace covers the drain", figure=figure)
