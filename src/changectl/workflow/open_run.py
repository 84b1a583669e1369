"""A run without an end, as the record tells it: what `recover` starts from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.errors import Refused
from changectl.core.history.events import ARM, LEASE, RUN_CLOSED, RUN_OPENED, STEP_CLOSED, WATCH, intent, outcome
from changectl.core.judging.judgement import Verdict
from changectl.core.lifecycle import Ending, Outcome
from changectl.core.ports import Event
from changectl.workflow.revert_order import KeptEdit, edits_of, proven_gone


@dataclass(frozen=True)
class OpenRun:
    """A run without an end, read from the record.

    Attributes:
        run: its id.
        service: the service's name.
        step: the step that was cut off; 0 for a revert, or where none had begun.
        verdict: the step's last verdict, if it came to one.
        good: the process that each instance was judged with, where the verdict was to keep it, and where it was watched
            to the end if the step asked for that.
        edits: what the step, or the reverted run, had saved; last step first.
        begun: the instances that the record says would be armed.
        leased: the instances on whose hosts a lease was asked for.
        reverts: the run that it was taking back; None: it was an apply.
        accepts: whether it was to accept what stands on the hosts, instead of taking anything back.
        closed: how the last step ended, where it has its end and only the run has none.
        planned: how many steps the plan has.
        judged: the instances that came to a verdict that decides; none does in an incident.
        instances: all of the service, in the order in which they were contacted.
        already: those that had the value before.
        all_or_none: whether the plan says `on_partial: revert_all`.
    """

    run: str
    service: str
    step: int
    verdict: str | None
    good: Mapping[str, tuple[int, int | None]]
    edits: tuple[KeptEdit, ...]
    begun: frozenset[str]
    leased: frozenset[str]
    reverts: str | None
    accepts: bool = False
    closed: Ending | None = None
    planned: int = 1
    judged: frozenset[str] = frozenset()
    instances: tuple[str, ...] = ()
    already: frozenset[str] = frozenset()
    all_or_none: bool = False

    @property
    def folders_of(self) -> str:
        """The run whose folders on the hosts hold the saved state."""
        return self.reverts or self.run


def open_run(events: Sequence[Event], reverted: Sequence[Event] = ()) -> OpenRun:
    """Read a run that was cut off.

    Args:
        events: its record.
        reverted: where it is a revert, the record of the run that it was taking back.

    Raises:
        Refused: it has its end already, or no beginning.
    """
    opened = next((event for event in events if event.kind == RUN_OPENED), None)
    if opened is None:
        raise Refused("the run has no beginning in the record: nothing can be recovered", reason="run_unknown")
    if any(event.kind == RUN_CLOSED for event in events):
        raise Refused(f"run {opened.run} has its end already: nothing is to be recovered", reason="run_finished")
    closed = {event.step: event for event in events if event.kind == STEP_CLOSED}
    last = max((event.step for event in events), default=0)
    step = last
    reverts = opened.body.get("reverts")
    verdicts = [event.body for event in events if event.kind == "verdict" and event.step == step]
    if reverts:
        steps = sorted({event.step for event in reverted if event.kind == "capture.outcome"}, reverse=True)
        gone = proven_gone(reverted)  # what that run itself had brought back is none of the revert's
        found_edits = [edit for number in steps for edit in edits_of(number, reverted)]
        edits = tuple(edit for edit in found_edits if (edit.step, edit.instance) not in gone)
    else:
        edits = tuple(edits_of(step, events)) if step else ()
    begun, leased = (
        {str(event.body.get("host")) for event in events if event.kind == intent(action) and event.step == step}
        for action in (ARM, LEASE)
    )
    found = [event.body for event in events if event.kind == "edit" and event.step == step]
    end = closed[last].body if last in closed else None
    return OpenRun(
        run=opened.run,
        service=str(opened.body["service"]),
        step=step,
        verdict=str(verdicts[-1].get("verdict")) if verdicts else None,
        good=_watched_well(_judged_good(verdicts), opened.body, events, step),
        edits=edits,
        begun=frozenset(begun),
        leased=frozenset(leased),
        reverts=str(reverts) if reverts else None,
        accepts=bool(opened.body.get("accepts")),
        closed=None if end is None else Ending(Outcome(end["outcome"]), end["reason"], end["text"]),
        planned=len(opened.body.get("steps") or []),
        judged=frozenset(str(body["host"]) for body in verdicts if not _undecided(body)),
        instances=tuple(dict.fromkeys(str(body["host"]) for body in found)),
        already=frozenset(str(body["host"]) for body in found if body["before_sha"] == body["after_sha"]),
        all_or_none=opened.body.get("on_partial") == "revert_all",
    )


def _undecided(body: Mapping[str, Any]) -> bool:
    return body.get("verdict") == Verdict.INCONCLUSIVE or body.get("decision") == "policy"


Good = Mapping[str, tuple[int, int | None]]


def _watched_well(good: Good, opened: Mapping[str, Any], events: Sequence[Event], step: int) -> Good:
    """Without the instances that the step was to watch, and whose watch did not come to its good end."""
    steps = opened.get("steps") or []
    if not 0 < step <= len(steps) or not steps[step - 1].get("watch"):
        return good
    ends = [event.body for event in events if event.kind == outcome(WATCH) and event.step == step]
    well = {str(body.get("host")) for body in ends if body.get("ok")}
    return {host: process for host, process in good.items() if host in well}


def _judged_good(verdicts: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int | None]]:
    good = {verdict.value for verdict in (Verdict.IMPROVED, Verdict.UNCHANGED, Verdict.NO_GROSS_HARM)}
    return {
        str(body["host"]): (body["process"][0], body["process"][1])
        for body in verdicts
        if body.get("verdict") in good and body.get("decision") in (None, "keep") and body.get("process")
    }
