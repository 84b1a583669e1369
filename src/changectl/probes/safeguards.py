"""Does the service come back by itself, and do its logs stay bounded?"""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 74
CHECK = Check("safeguards", "advice")


def check(situation: Situation) -> CheckResult:
    """Restart policy and log rotation, as far as the manager tells."""
    if situation.manager is None:
        return CHECK.unknown("the manager is not known")
    show = situation.observed.manager.show if situation.observed else None
    missing = situation.manager.missing_safeguards(show)
    if missing is None:
        return CHECK.unknown("the manager did not tell")
    if missing:
        return CHECK.failed("; ".join(missing), "worth a step of its own")
    return CHECK.passed("restart policy set, logs handled by the manager")
