"""A change of a service that is already sick: what it cannot be asked for, and what is watched instead of measured."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from changectl.core.engine import FailureLine, Readiness
from changectl.core.errors import InputError, Problem
from changectl.core.lifecycle import GUARD_BROKEN
from changectl.core.observed import Observed, Status
from changectl.core.precheck import CheckResult

INCIDENT = "incident"  # the reason of a step that was kept because its live guards held
STAYS = 3.0  # seconds that a process has to live before it is more than one turn of a crash loop
WAIVED = "waived because of the incident"
_HEALTHY, _PORT = "healthy_now", "port_owner"


@dataclass(frozen=True, slots=True)
class Incident:
    """Why a change may go ahead without a comparison, and how long it is watched.

    Attributes:
        reason: as the operator gave it.
        seconds: how long the live guards have to hold.
        every: seconds between two real answers.
    """

    reason: str
    seconds: float = 120.0
    every: float = 5.0

    def __post_init__(self) -> None:
        """Raises InputError where no reason is given: it is all that a later reader has instead of figures."""
        if not self.reason.strip():
            raise InputError(Problem("--incident needs a reason", hint='for example: --incident "OPS-99 chat is down"'))


def process_stays(observed: Observed, status: Status) -> bool:
    """Whether the process that was looked at is one to compare with: the same a moment later, and not just started.

    In a crash loop it may be a start that has not even become the engine yet.
    """
    process = observed.process
    same = process is not None and status.identity == (process.pid, process.start_ticks)
    return same and status.running_for is not None and status.running_for >= STAYS


def sickness(status: Status, readiness: Readiness, *, stays: bool) -> str:
    """What is wrong with a service, in a few words; "": it runs and answers.

    Args:
        status: as the manager tells it.
        readiness: what the engine's pages say.
        stays: whether it has a process that stays.
    """
    if readiness.state == "ready":
        return ""
    if stays:
        return f"it ran and did not answer: {readiness.detail}"
    sub = f", {status.sub}" if status.sub and status.sub != status.active else ""
    return f"it did not run: {status.active}{sub}"


def waive(
    results: Sequence[CheckResult], reads_process: Collection[str], *, port_is_free: bool
) -> tuple[list[CheckResult], list[CheckResult]]:
    """The pre-checks with those waived that a sick service cannot pass, and the waived ones alone.

    Waived are its health, what nobody could look at because it is sick, and a port that nobody holds. What protects the
    way back reads no process, so it stays required; so does whatever was looked at and found wrong.

    Args:
        results: of all pre-checks.
        reads_process: the names of those that look at the running process.
        port_is_free: whether nobody at all holds the service's port; another one's answers must not pass for ours.
    """
    if not any(one.name == _HEALTHY and one.state != "passed" for one in results):
        return list(results), []

    def cannot_pass(one: CheckResult) -> bool:
        if one.name == _PORT:
            return port_is_free
        return one.name == _HEALTHY or (one.state == "unknown" and one.name in reads_process)

    kept, waived = [], []
    for one in results:
        if one.refuses and cannot_pass(one):
            one = replace(one, level="advice", detail=f"{one.detail} ({WAIVED})", because="")
            waived.append(one)
        kept.append(one)
    return kept, waived


def failure_line(lines: Iterable[str], known: Sequence[FailureLine]) -> str | None:
    """The first line of a running service's log that its engine is known to fail with; None: there is none."""
    return next((line.strip() for line in lines if any(re.search(row.pattern, line) for row in known)), None)


__all__ = [
    "GUARD_BROKEN", "INCIDENT", "STAYS", "WAIVED", "Incident", "failure_line", "process_stays", "sickness", "waive",
]  # fmt: skip
