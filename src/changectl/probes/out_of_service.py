"""Can the instance leave service and come back? Before it is stopped, its users have to be served by others."""

from __future__ import annotations

from dataclasses import replace

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 17
CHECK = Check("out_of_service", "required")


def check(situation: Situation) -> CheckResult:
    """The switch can be made, the others have room, and the instance gives the answers that let it come back."""
    leaving = situation.leaving
    if leaving is None:
        return CHECK.unknown("whether it can be taken out of service was not looked at")
    if not leaving.place:
        return CHECK.not_applicable("nothing takes it out of service")
    if leaving.trouble:
        return replace(CHECK.failed(leaving.trouble, figure=leaving.place), reason=leaving.reason)
    if leaving.out:
        return CHECK.passed("it is out of service already, and stays as it is", leaving.place)
    if leaving.noticed:
        return CHECK.passed(
            "the plan allows that users notice it, so nobody was asked who serves meanwhile", leaving.place
        )
    return CHECK.passed("the others answer and have room for what it serves", leaving.place)
