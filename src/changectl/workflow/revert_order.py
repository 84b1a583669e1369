"""What a revert has to take back, read from the record: the kept edits of a run, and what stands on it or is open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.errors import Refused
from changectl.core.history.runs import CHANGED_NOTHING
from changectl.core.lifecycle import Outcome
from changectl.core.ports import Event
from changectl.core.rollout import STAYS
from changectl.workflow.tools import Tools


@dataclass(frozen=True)
class KeptEdit:
    """One file on one instance that a kept step changed."""

    step: int
    instance: str
    path: str
    before: str  # digests
    after: str
    copy: str  # the controller's copy of the snapshot
    state_dir: str | None = None  # the host's state folder at that time; None: an older record, which does not tell
    folder: str | None = None  # the run's folder on the host; None: as state_dir


@dataclass(frozen=True)
class Revert:
    """What is to be taken back, read from the record of the run."""

    run: str
    service: str
    reason: str
    edits: tuple[KeptEdit, ...]  # last step first, and in each the last instance first
    finished: bool = True  # False: cut off, or the last way back failed; what stands there is not known
    reverts: str | None = None  # the run was itself a revert of this one


_UNPROVEN = (Outcome.REVERT_FAILED.value, Outcome.REVERT_UNVERIFIED.value)


def what_to_revert(run: str, events: Sequence[Event], reason: str, others: Sequence[Event] = ()) -> Revert:
    """Read a run's record: the kept steps, or, of a run that was cut off, every step that got as far as saving.

    Args:
        run: the run that is to be taken back.
        events: its record.
        reason: why.
        others: openings and ends of all runs, for what earlier reverts of this one came to.

    Raises:
        Refused: nothing of the run was kept.
    """
    opened = next((event for event in events if event.kind == "run.opened"), None)
    if opened is None:
        raise Refused(f"run {run} has no beginning in the record: nothing can be reverted", reason="run_unknown")
    closed = [event for event in events if event.kind == "step.closed"]
    # After a way back that failed, or was not proven, nobody knows what stands there: the same as after a cut.
    unproven = {event.step for event in closed if event.body["outcome"] in _UNPROVEN}
    finished = any(event.kind == "run.closed" for event in events) and not unproven
    steps = {event.step for event in closed if is_in_force(event.body)} | unproven
    if not finished:
        # Cut off: whatever was saved may have been changed, and only the host knows.
        steps |= {event.step for event in events if event.kind == "capture.outcome" and event.body.get("ok")}
    gone = proven_gone(events)
    edits = [
        edit
        for step in sorted(steps, reverse=True)
        for edit in reversed(edits_of(step, events))
        if (step, edit.instance) not in gone
    ]
    if finished and not edits:
        raise Refused(f"nothing of run {run} was kept, so there is nothing to revert", reason="nothing_kept")
    before = _last_revert(run, others)
    certain = finished if before is None else before not in _UNPROVEN
    return Revert(run, str(opened.body["service"]), reason, tuple(edits), certain, opened.body.get("reverts"))


def _last_revert(run: str, others: Sequence[Event]) -> str | None:
    """The outcome of the last revert of a run that acted and came to its end; None: there was none."""
    reverts = {event.run for event in others if event.kind == "run.opened" and event.body.get("reverts") == run}
    ends = [event.body["outcome"] for event in others if event.kind == "run.closed" and event.run in reverts]
    acted = (Outcome.REVERTED.value, Outcome.KEPT_UNJUDGED.value, *_UNPROVEN)
    return next((outcome for outcome in reversed(ends) if outcome in acted), None)


def is_in_force(body: Mapping[str, Any]) -> bool:
    """Whether a closed step changed an instance at least and left it so."""
    return Outcome(body["outcome"]).in_part and body.get("reason") not in CHANGED_NOTHING


def proven_gone(events: Sequence[Event]) -> set[tuple[int, str]]:
    """Step and instance of every edit that its own run left out or brought back, as far as that is proven."""
    closed = [event for event in events if event.kind == "step.closed" and event.body["outcome"] not in _UNPROVEN]
    return {(event.step, name) for event in closed for name in not_in_force(event.body)}


def not_in_force(body: Mapping[str, Any]) -> list[str]:
    """The instances that a closed step left as they were, or brought back; an older record names none."""
    return [name for name, end in (body.get("instances") or {}).items() if end not in STAYS]


def edits_of(step: int, events: Sequence[Event]) -> list[KeptEdit]:
    """What a step edited on the instances whose state it had saved."""
    captures = {event.body["host"]: event.body for event in events
                if event.step == step and event.kind == "capture.outcome" and event.body.get("ok")}  # fmt: skip
    return [
        KeptEdit(step, event.body["host"], event.body["path"], event.body["before_sha"], event.body["after_sha"],
                 captures[event.body["host"]]["copy"], captures[event.body["host"]].get("state_dir"),
                 captures[event.body["host"]].get("folder"))
        for event in events
        if event.step == step and event.kind == "edit" and event.body["host"] in captures
    ]  # fmt: skip


def later_run(order: Revert, events: Sequence[Event]) -> str | None:
    """The last run that changed the service after this one, was kept and not reverted; None: there is none."""
    opened = [event for event in events if event.kind == "run.opened"]
    reverted = {str(event.body.get("reverts")) for event in opened}
    kept = {event.run for event in events if event.kind == "step.closed" and is_in_force(event.body)}
    at = next((event.sequence for event in opened if event.run == order.run), 0)
    later = [
        event.run
        for event in opened
        if event.sequence > at and event.body.get("service") == order.service and event.run in kept - reverted
    ]
    return later[-1] if later else None


def refuse_unfinished_others(order: Revert, tools: Tools) -> bool:
    """Whether an earlier revert of the same run was cut off, so that nobody knows how far it came.

    Raises:
        Refused: the run is itself a revert that was cut off, or another run on the service was: what that one left
            behind is not known, and neither is what a revert of an older one would leave.
    """
    if order.reverts and not order.finished:
        text = f"run {order.run} was the revert of {order.reverts}: {way_to_settle(order.run, tools)}"
        raise Refused(text, reason="unfinished_run")
    unfinished = list(tools.memory.unfinished(order.service))
    again = [run for run in unfinished if _reverts(run, tools) == order.run]
    others = [run for run in unfinished if run != order.run and run not in again]
    if others and order.run not in unfinished:
        text = f"what run {others[0]} left behind on service {order.service} is not known: "
        text += way_to_settle(others[0], tools)
        raise Refused(text, reason="unfinished_run")
    return bool(again)


def way_to_settle(run: str, tools: Tools) -> str:
    """What is the matter with a run whose end is open or not proven, and the command that settles it."""
    if not any(event.kind == "run.closed" for event in tools.journal.events(run)):
        return f"it was cut off and never ended. Settle it first: changectl recover {run}"
    return f"it ended, but its way back is not proven. Settle it first: changectl revert {_reverts(run, tools) or run}"


def _reverts(run: str, tools: Tools) -> str | None:
    opened = next((event for event in tools.journal.events(run) if event.kind == "run.opened"), None)
    return None if opened is None else opened.body.get("reverts")
