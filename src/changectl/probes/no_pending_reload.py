"""No unit waits for a daemon-reload: else our reload would activate somebody's earlier edit together with ours."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 14
CHECK = Check("no_pending_reload", "required")


def check(situation: Situation) -> CheckResult:
    """What systemd itself says: NeedDaemonReload."""
    if situation.manager is None or situation.observed is None:
        return CHECK.unknown("the manager was not asked")
    if situation.manager.name != "systemd":
        return CHECK.not_applicable(f"manager {situation.manager.name} has no units")
    pending = situation.observed.manager.need_daemon_reload
    if pending is None:
        return CHECK.unknown("systemd did not say whether a daemon-reload is pending")
    if pending:
        return CHECK.failed(
            "a unit file was edited and not reloaded: this change would activate that edit too",
            "look at the edit with `systemctl cat`, then `systemctl daemon-reload` and restart",
        )
    return CHECK.passed("no daemon-reload is pending")
