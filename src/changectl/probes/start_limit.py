"""The start limit has room for all starts of the run: else a correct way back is refused by systemd."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 60
CHECK = Check("start_limit", "required")


def check(situation: Situation) -> CheckResult:
    """StartLimitBurst against the starts that the run may need, the way back included."""
    if situation.manager is None or situation.starts_needed is None:
        return CHECK.unknown("not known how many starts are needed")
    show = situation.observed.manager.show if situation.observed else None
    room = situation.manager.start_limit_room(show, situation.starts_needed)
    if room.ok is None:
        return CHECK.unknown("the start limit is not known", figure=room.figure)
    if not room.ok:
        return CHECK.failed(
            "the start limit is too low for this run", "raise StartLimitBurst= in the unit", room.figure
        )
    return CHECK.passed("the start limit has room", figure=room.figure)
