"""The new value breaks no rule between settings that the engine would only tell after the stop."""

from __future__ import annotations

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 52
CHECK = Check("cross_rules", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """Rules broken after the change that were not broken before it."""
    engine, after = situation.engine, situation.settings_after
    if engine is None or after is None:
        return CHECK.unknown("the engine's settings were not read")
    before = set(engine.cross_rules(situation.settings_before or {}))
    broken = [rule for rule in engine.cross_rules(after) if rule not in before]
    if broken:
        return CHECK.failed("; ".join(broken), "change the other setting first, in a step of its own")
    return CHECK.passed("no rule between settings is broken", figure=f"{counted(len(after), 'setting')} known")
