"""How a step can end, which exit code says so, and the one legal next move of a step that was cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """What became of a step."""

    KEPT = "kept"
    KEPT_UNJUDGED = "kept_unjudged"
    KEPT_PARTLY = "kept_partly"  # some instances keep it; one did not, and the rest were not touched
    REVERTED = "reverted"
    REVERT_UNVERIFIED = "revert_unverified"
    REVERT_FAILED = "revert_failed"
    REFUSED = "refused"
    ABORTED = "aborted"

    @property
    def in_force(self) -> bool:
        """Whether the change is what runs now, on every instance."""
        return self in (Outcome.KEPT, Outcome.KEPT_UNJUDGED)

    @property
    def in_part(self) -> bool:
        """Whether the change is what runs now on one instance at least."""
        return self.in_force or self is Outcome.KEPT_PARTLY


# Why a step was not kept although there was evidence; every other reason is one for lack of evidence.
DIED = "died_after_judgement"
NEIGHBOUR_OUT = "neighbour_out"  # in a rollout: another instance does not answer, so no further one is taken out
GUARD_BROKEN = "guard_broken"  # in an incident: it restarted, logged a failure or gave no answer while it was watched
# While it was watched before it was to be kept: what broke, and how (core/judging/watch.py).
WATCH_PROCESS, WATCH_LOG, WATCH_DEVICE = "watch_process", "watch_log", "watch_device"
WATCH_FAILURES, WATCH_MEMORY = "watch_failures", "watch_memory"
WATCH_LATENCY, WATCH_PREEMPTIONS = "watch_latency", "watch_preemptions"
FOR_CAUSE = frozenset({
    "regressed", "did_not_start", "start_failed", "not_effective", "check_failed", "unchanged", DIED,
    GUARD_BROKEN, WATCH_PROCESS, WATCH_LOG, WATCH_DEVICE, WATCH_FAILURES, WATCH_MEMORY, WATCH_LATENCY,
    WATCH_PREEMPTIONS,
})  # fmt: skip
# The host refused to write: the configuration is not what was read, or cannot be written. Nothing was changed.
NOTHING_WRITTEN = frozenset({
    "changed_by_other", "immutable", "read_only", "disk_full", "not_permitted", "not_found", "cannot_keep_metadata",
    "not_captured", "other_user", "not_armed",
})  # fmt: skip
# Somebody else's run has the host: the same as a lock in the record.
HELD = frozenset({"held", "armed_by_other"})
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
            return 7 if self.reason in HELD else 3
        return _not_kept(self.reason)


def _not_kept(reason: str) -> int:
    if reason == INTERRUPTED:
        return 130
    if reason == UNEXPECTED:
        return 1
    # Whatever else ended the trial (an invalid comparison, a host that did not answer) left it without evidence.
    return 4 if reason in FOR_CAUSE else 5


class Found(StrEnum):
    """What a host says of a run that was cut off."""

    UNTOUCHED = "untouched"  # nothing was ever armed there, so nothing was changed
    KEPT = "kept"  # the host has on record that it was judged and kept
    ACCEPTED = "accepted"  # the host has on record that a person accepted what stands there, without a judgement
    RESTORED = "restored"  # the host has on record that the saved configuration is back
    OPEN = "open"  # armed, and nothing was decided


DECIDED = (Found.KEPT, Found.ACCEPTED)  # the change stays there


class Move(StrEnum):
    """What is to be done about a step that was cut off."""

    ABORT = "abort"  # close it: nothing was changed anywhere
    KEEP = "keep"  # close it as kept: every host says so
    RESTORE = "restore"  # bring the saved configuration back where it is not decided, prove it, close it


def found_on(standing: Mapping[str, Any], *, begun: bool) -> Found:
    """What a host's `standing` answer means for the run.

    Args:
        standing: the answer.
        begun: whether the journal announced that the host would be armed.
    """
    if standing.get("armed"):
        return Found.OPEN
    decided, fired = (_record(standing, name) for name in ("disarmed", "fired"))
    if _generation(fired) > _generation(decided):  # the later one counts: what was disarmed may have been armed again
        done = fired.get("state") == "done" and fired.get("outcome") in ("restored", "nothing_to_do")
        return Found.RESTORED if done else Found.OPEN
    if decided:
        known = {"kept": Found.KEPT, "accepted": Found.ACCEPTED, "reverted": Found.RESTORED}
        return known.get(str(decided.get("outcome")), Found.OPEN)
    if standing.get("touched"):
        return Found.OPEN  # it was changed, and what was to be done about that is not on record any more
    return Found.OPEN if begun and standing.get("generation") is None else Found.UNTOUCHED


def _record(standing: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = standing.get(name)
    return found if isinstance(found, Mapping) else {}


def _generation(record: Mapping[str, Any]) -> int:
    value = record.get("generation")
    return value if isinstance(value, int) else 0 if record else -1


def next_move(found: Sequence[Found], *, all_or_none: bool = False) -> Move:
    """The one legal next move for a step that was cut off.

    Instances follow one another: where every host that was touched has it on record that the change is kept, it stays
    there, and the untouched stay untouched. Else the saved configuration comes back where nothing is decided.

    Args:
        found: what each host said.
        all_or_none: the plan says `on_partial: revert_all`: what is not kept everywhere is kept nowhere.
    """
    if all(one is Found.UNTOUCHED for one in found):
        return Move.ABORT
    if all(one in DECIDED for one in found):
        return Move.KEEP
    if all(one in (*DECIDED, Found.UNTOUCHED) for one in found) and not all_or_none:
        return Move.KEEP
    return Move.RESTORE
