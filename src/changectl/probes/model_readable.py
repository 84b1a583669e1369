"""The service's user can read every model file: a restart would need that again."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 32
CHECK = Check("model_readable", "required")


def check(situation: Situation) -> CheckResult:
    """Modes and owners of the files and of the folders above them, for the service's user."""
    if not situation.model_declared:
        return CHECK.not_applicable("the service declares no model folder")
    readable = situation.model.readable_by if situation.model else None
    if readable is None or readable.all is None:
        return CHECK.unknown("not known whether the service's user can read the model")
    figure = "" if readable.uid is None else f"user id {readable.uid}"
    if readable.all:
        return CHECK.passed("the service's user can read every file", figure=figure)
    hint = "access control lists were not considered" if readable.acl_considered is False else ""
    return CHECK.failed(f"not readable for the service: {', '.join(readable.denied) or 'some files'}", hint, figure)
