"""The service's user can read every model file: a restart would need that again."""

from __future__ import annotations

from dataclasses import replace

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 32
CHECK = Check("model_readable", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """Modes, owners and access control lists of the files and of the folders above them, for the service's user."""
    if not situation.model_declared:
        return CHECK.not_applicable("the service declares no model folder")
    readable = situation.model.readable_by if situation.model else None
    if readable is None or (readable.all is None and not readable.unclear):
        return CHECK.unknown("not known whether the service's user can read the model")
    if readable.all is None:
        # The running process did read them: a list of a kind that we do not understand is no reason to refuse.
        lists = f"an access control list is not understood: {', '.join(readable.unclear)}"
        return replace(CHECK.unknown(lists, "try it as the service's user"), level="advice")
    figure = "" if readable.uid is None else f"user id {readable.uid}"
    if readable.all:
        return CHECK.passed("the service's user can read every file", figure=figure)
    hint = "the running service may have opened them before: do not restart it now"
    return CHECK.failed(f"not readable for the service: {', '.join(readable.denied) or 'some files'}", hint, figure)
