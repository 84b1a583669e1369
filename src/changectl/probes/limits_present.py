"""Are concurrency, batch, queue, context and timeouts bounded explicitly? Unset ones move with the engine's version."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 72
CHECK = Check("limits_present", "advice", reads_process=True)
LIMITS = ("concurrency_limit", "batch_tokens", "queue_limit", "context_len", "timeout")


def check(situation: Situation) -> CheckResult:
    """The limits that the engine has settings for, against those that are set."""
    if situation.engine is None or situation.settings_before is None:
        return CHECK.unknown("the engine's settings were not read")
    rows = [row for row in situation.engine.settings if row.canonical in LIMITS]
    if not rows:
        return CHECK.not_applicable(f"{situation.engine.name} has no such settings")
    unset = [f"{row.name} ({row.canonical})" for row in rows if row.name not in situation.settings_before]
    figure = f"{len(rows) - len(unset)} of {len(rows)} set"
    if unset:
        return CHECK.failed(
            f"not set, so the default of the engine's version counts: {', '.join(unset)}",
            "set them in steps of their own",
            figure,
        )
    return CHECK.passed("the limits are set", figure)
