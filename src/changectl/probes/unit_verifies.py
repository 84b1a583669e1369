"""The edited unit verifies without new warnings: systemd ignores what it does not understand, silently."""

from __future__ import annotations

from collections import Counter

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 54
CHECK = Check("unit_verifies", "required")


def check(situation: Situation) -> CheckResult:
    """Warnings of the unit as it would be, less those that it has now."""
    manager = situation.manager
    if manager is None:
        return CHECK.unknown("the manager is not known")
    if manager.name != "systemd":
        return CHECK.not_applicable(f"manager {manager.name} has no units")
    if situation.edited_files and not any(map(manager.needs_daemon_reload_after, situation.edited_files)):
        return CHECK.not_applicable("no unit file is edited")
    if situation.unit_verify is None:
        return CHECK.unknown("the unit was not verified")
    new = Counter(situation.unit_verify.after) - Counter(situation.unit_verify.before)
    if new:
        return CHECK.failed("; ".join(new), "the edit does not mean what it should", f"{new.total()} new warnings")
    return CHECK.passed("no new warnings", figure=f"{len(situation.unit_verify.before)} old ones")
