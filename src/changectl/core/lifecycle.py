"""How a step can end, and which exit code says so. The only place where outcome and cause become a number."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What became of a step."""

    KEPT = "kept"
    KEPT_UNJUDGED = "kept_unjudged"
    REVERTED = "reverted"
    REVERT_UNVERIFIED = "revert_unverified"
    REVERT_FAILED = "revert_failed"
    REFUSED = "refused"
    ABORTED = "aborted"

    @property
    def in_force(self) -> bool:
        """Whether the change is what runs now."""
        return self in (Outcome.KEPT, Outcome.KEPT_UNJUDGED)


# Why a step was not kept although there was evidence; every other reason is one for lack of evidence.
DIED = "died_after_judgement"
FOR_CAUSE = frozenset({
    "regressed", "did_not_start", "start_failed", "not_effective", "check_failed", "unchanged", DIED,
})  # fmt: skip
# The host refused to write: the configuration is not what was read, or cannot be written. Nothing was changed.
NOTHING_WRITTEN = frozenset({
    "changed_by_other", "immutable", "read_only", "disk_full", "not_permitted", "not_found", "cannot_keep_metadata",
    "not_captured", "other_user",
})  # fmt: skip
INTERRUPTED = "interrupted"
UNEXPECTED = "unexpected_error"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a step: outcome, a stable word for the cause, and a sentence."""

    outcome: Outcome
    reason: str
    text: str

    @property
    def exit_code(self) -> int:
        """See the table of exit codes in docs/reference/exit-codes.md."""
        if self.outcome.in_force:
            return 0
        if self.outcome in (Outcome.REVERT_UNVERIFIED, Outcome.REVERT_FAILED):
            return 6
        if self.outcome is Outcome.REFUSED:
            return 3
        return _reverted(self.reason)


def _reverted(reason: str) -> int:
    if reason == INTERRUPTED:
        return 130
    if reason == UNEXPECTED:
        return 1
    # Whatever else ended the trial (an invalid comparison, a host that did not answer) left it without evidence.
    return 4 if reason in FOR_CAUSE else 5
