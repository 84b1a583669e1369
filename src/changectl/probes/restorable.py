"""The saved bytes can be restored: a scratch restore on the host gave the same bytes and metadata."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 20
CHECK = Check("restorable", "required")


def check(situation: Situation) -> CheckResult:
    """The host's own proof; a preview captures nothing and says so."""
    if situation.capture is None:
        if situation.preview:
            return CHECK.not_applicable(
                "a preview changes nothing on the host: proven at apply, before the first write"
            )
        return CHECK.unknown("nothing was captured yet")
    figure = f"{counted(len(situation.capture.files), 'file')} saved and read back"
    if not situation.capture.restorable:
        problems = "; ".join(map(_told, situation.capture.problems)) or "no reason given"
        return CHECK.failed(f"the scratch restore differs: {problems}", "without a way back nothing is changed", figure)
    if not situation.capture.files:
        return CHECK.unknown("no file was captured")
    return CHECK.passed("saved, restored beside the original, and equal", figure=figure)


def _told(problem: Any) -> str:
    """A problem as the host names it: {path, problem}, or a sentence."""
    if isinstance(problem, Mapping) and "problem" in problem:
        return f"{problem.get('path', 'a file')}: {problem['problem']}"
    return str(problem)
