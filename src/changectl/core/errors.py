"""Every way a command can end other than well: one class per exit code (design: exit codes are few and stable)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with what an operator wrote: where it stands, what is wrong, and what to write instead."""

    message: str
    file: str = ""
    line: int = 0  # 1-based; 0: unknown
    column: int = 0  # 1-based; 0: unknown
    path: str = ""  # e.g. "steps/1/change"
    hint: str = ""  # what to write instead

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part)
        head = ": ".join(part for part in (place, self.path, self.message) if part)
        return f"{head}\n  {self.hint}" if self.hint else head


class ChangectlError(Exception):
    """The base: `exit_code` for shells, `reason` (a stable word) for machines, the text for people."""

    exit_code = 1
    reason = "unexpected_error"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        if reason is not None:
            self.reason = reason


class InputError(ChangectlError):
    """A plan, service, inventory or project file, or the command line, is not usable. No host was touched."""

    exit_code = 2
    reason = "bad_input"

    def __init__(self, problems: Problem | Iterable[Problem] | str) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class Refused(ChangectlError):
    """A required pre-check failed, or the request makes no sense now. Nothing was changed."""

    exit_code = 3
    reason = "refused"


class Locked(ChangectlError):
    """Another change of the same service is open; the text names its run and owner."""

    exit_code = 7
    reason = "locked"


class ContactLost(ChangectlError):
    """The host does not answer any more."""

    exit_code = 9
    reason = "contact_lost"


class LeftToHost(ContactLost):
    """A host with an armed dead-man does not answer: it restores itself, and `changectl recover` settles the run."""

    reason = "left_to_host"


class PersonNeeded(ChangectlError):
    """What stands on a host is not known, and no command can settle it as things are."""

    exit_code = 6
    reason = "needs_person"


class LeaseLost(ChangectlError):
    """A host said that the run's lease is over: its dead-man acts, and the run may not any more."""

    reason = "lease_lost"


class HostCallError(ChangectlError):
    """The host program answered that it did not do what was asked; `reason` is its stable word for why.

    `details` are the facts that it told with it, for example `written`: whether new bytes may be in force.
    """

    reason = "host_call_failed"

    def __init__(self, message: str, *, reason: str | None = None, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, reason=reason)
        self.details: dict[str, Any] = dict(details or {})


class EditRefused(ChangectlError):
    """A value cannot be found or edited without doubt; the text says why and in which line."""

    exit_code = 3
    reason = "edit_refused"
