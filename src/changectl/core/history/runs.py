"""From events to runs: what was changed, by whom, with what outcome. Pure: events in, values out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.history import events as kinds
from changectl.core.history.change import ChangeText, change_text, found_value
from changectl.core.history.events import mapping_of, mappings_of, number_of, text_of, texts_of
from changectl.core.history.out_of_service import OutOfService, left_out, put_back
from changectl.core.judging.flagging import FAILURES_FLAG, FLAGGED_FAILURES
from changectl.core.ports import Event
from changectl.core.rollout import HAS_VALUE

OPEN = "open"  # outcome of a run or step whose end is not recorded
KEPT = ("kept", "kept_unjudged")
IN_PART = (*KEPT, "kept_partly")  # the change is in force on one instance at least
SETTLING = ("reverted", "kept_unjudged")  # how a run has to end to settle the one that it is about; a refusal does not
UNPROVEN = ("revert_unverified", "revert_failed")  # exit code 6: what stands on the hosts is not known
CALIBRATED = "calibrated"  # the reason of a step that measured the saved configuration alone, to learn its noise
NOTHING_TO_DO = "nothing_to_do"  # the reason of a step, or a revert, that found everything in place already
CHANGED_NOTHING = (NOTHING_TO_DO, CALIBRATED)


@dataclass(frozen=True, slots=True)
class InstanceEnd:
    """What became of one instance in a step."""

    name: str
    outcome: str  # one of OUTCOMES, `untouched` or `nothing_to_do`
    found: str | None  # the value that its file held before; None: absent, or not recorded

    @property
    def has_value(self) -> bool:
        """Whether it has the step's value."""
        return self.outcome in HAS_VALUE


@dataclass(frozen=True, slots=True)
class StepSummary:
    """One step of a run."""

    number: int
    change: ChangeText
    outcome: str  # one of OUTCOMES, or OPEN, or "not_started" once the run is closed
    verdict: str | None
    reason: str  # a stable word
    text: str  # the same for people
    outage_seconds: float | None  # None: not known
    failures_flagged: bool  # more than 1 % of the requests failed, before, after, or while it was watched
    started_at: str | None
    closed_at: str | None
    instances: tuple[InstanceEnd, ...] = ()  # in order; empty: not recorded

    @property
    def changed_something(self) -> bool:
        """Whether the step was kept, on one instance at least, and is why the configuration is as it is."""
        return self.outcome in IN_PART and self.reason not in CHANGED_NOTHING

    @property
    def kept_unjudged(self) -> bool:
        """Whether an instance keeps it that nobody has judged."""
        ends = [one.outcome for one in self.instances] if self.outcome == "kept_partly" else [self.outcome]
        return "kept_unjudged" in ends

    @property
    def judged_and_kept(self) -> bool:
        """Whether it was measured and judged on what was there before, and kept."""
        return self.outcome == "kept" and self.verdict is not None and self.reason not in CHANGED_NOTHING


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: `apply` of one plan, or the revert of an earlier run."""

    run: str
    service: str
    plan: str
    plan_digest: str
    reason: str
    ticket: str | None
    actor: str
    hosts: tuple[str, ...]
    tool_version: str
    opened_at: str
    closed_at: str | None
    outcome: str  # one of OUTCOMES, or OPEN
    exit_code: int | None
    end_reason: str  # a stable word for how it ended; "" while that is not recorded
    steps: tuple[StepSummary, ...]
    reverts: str | None  # the run that this one takes back
    extends: str | None = None  # the run whose trial it went on with
    incident: str = ""  # why it was made without a comparison; "": it was not made in an incident
    extended_by: str | None = None  # the run that went on with its trial
    reverted_by: str | None = None  # the run that took this one back
    found_back_by: str | None = None  # the revert that found it taken back already and did nothing
    doubted_by: str | None = None  # the last revert of it, whose end is not recorded or not proven
    out: tuple[OutOfService, ...] = ()  # instances that it left out of service, by its record
    took_out: frozenset[str] = frozenset()  # instances that it found in service and took out
    put_back: frozenset[str] = frozenset()  # folders on balancers of what is in service again by its record
    settled_by: str | None = None  # of a run without a proven end: the run that took it back, or accepted what it left

    @property
    def unfinished(self) -> bool:
        """Whether it was begun, its end is not recorded, and nobody settled it since."""
        return self.outcome == OPEN and self.settled_by is None

    @property
    def unproven(self) -> bool:
        """Whether it ended with a way back that failed or was not proven (exit code 6)."""
        return self.outcome in UNPROVEN or any(step.outcome in UNPROVEN for step in self.steps)

    @property
    def needs_person(self) -> bool:
        """Whether it ended like that, and nobody settled it since."""
        return self.unproven and self.outcome != OPEN and self.settled_by is None

    @property
    def is_open_work(self) -> bool:
        """Whether what it left on the hosts is not known: no other change may be built on that."""
        return self.unfinished or self.needs_person

    @property
    def to_revert(self) -> str:
        """The run that `changectl revert` has to name to settle this one: its own, or the one that it was to revert."""
        return self.reverts or self.run

    @property
    def did_nothing(self) -> bool:
        """Whether everything that it was to do was done already."""
        if self.reverts:
            return self.end_reason == NOTHING_TO_DO
        return bool(self.steps) and all(step.reason == NOTHING_TO_DO for step in self.steps)

    @property
    def calibrates(self) -> bool:
        """Whether it was to change nothing, and to learn the noise of the hosts."""
        return any(step.change.kind == kinds.CALIBRATION for step in self.steps)

    @property
    def outage_seconds(self) -> float | None:
        """How long the service was out because of this run; None: not known of any step."""
        known = [step.outage_seconds for step in self.steps if step.outage_seconds is not None]
        return sum(known) if known else None


def runs(events: Iterable[Event]) -> list[RunSummary]:
    """All runs among the events, in the order in which they were opened."""
    by_run: dict[str, list[Event]] = {}
    for event in events:
        by_run.setdefault(event.run, []).append(event)
    return _with_ends([summarise(own) for own in by_run.values()])


def open_work(events: Iterable[Event]) -> list[RunSummary]:
    """The runs after which nobody knows what stands on the hosts, oldest first: they have to be settled first.

    Either their end is not recorded (`unfinished`), or their way back failed or was not proven (`needs_person`).
    """
    return [run for run in runs(events) if run.is_open_work]


def still_out(own: Sequence[RunSummary]) -> tuple[tuple[str, OutOfService], ...]:
    """Of a service's runs, oldest first: what each left out of service, and no later one found or put back in."""
    return tuple(
        (run.run, one)
        for place, run in enumerate(own)
        for one in run.out
        if not any(one.instance in later.took_out or one.folder in later.put_back for later in own[place + 1 :])
    )


def endings(found: Iterable[RunSummary]) -> dict[str, str]:
    """How each run ended that has its end, in words; with the command that settles it, where that is left to do."""
    told = {}
    for run in found:
        if run.outcome == OPEN:
            continue
        end = "ended" if run.exit_code is None else f"ended with exit code {run.exit_code}"
        told[run.run] = f"{end} and is not settled: changectl revert {run.to_revert}" if run.needs_person else end
    return told


def summarise(events: Sequence[Event]) -> RunSummary:
    """One run from its events, oldest first; at least one."""
    opened = _last(events, kinds.RUN_OPENED)
    closed = _last(events, kinds.RUN_CLOSED)
    body: Mapping[str, Any] = opened.body if opened else {}
    steps = tuple(_steps(body, events, over=closed is not None))
    exit_code = number_of(closed.body, "exit_code") if closed else None
    return RunSummary(
        run=events[0].run,
        service=text_of(body, "service"),
        plan=text_of(body, "plan"),
        plan_digest=text_of(body, "plan_digest"),
        reason=text_of(body, "reason"),
        ticket=text_of(body, "ticket") or None,
        actor=text_of(body, "actor"),
        hosts=texts_of(body, "hosts"),
        tool_version=text_of(body, "tool_version"),
        opened_at=(opened or events[0]).at,
        closed_at=closed.at if closed else None,
        outcome=_run_outcome(closed, steps),
        exit_code=None if exit_code is None else int(exit_code),
        end_reason=text_of(closed.body, "reason") if closed else "",
        steps=steps,
        reverts=text_of(body, "reverts") or None,
        extends=text_of(body, "extends") or None,
        incident=text_of(body, "incident"),
        out=tuple(left_out(events).values()),
        took_out=frozenset(text_of(event.body, "host") for event in events if event.kind == kinds.intent(kinds.DRAIN)),
        put_back=put_back(events),
    )


def _steps(opened: Mapping[str, Any], events: Sequence[Event], *, over: bool) -> Iterable[StepSummary]:
    declared = mappings_of(opened, "steps")
    count = max([len(declared), *(event.step for event in events)])
    for number in range(1, count + 1):
        body = declared[number - 1] if number <= len(declared) else {}
        yield _step(number, body, [event for event in events if event.step == number], over=over)


def _step(number: int, declared: Mapping[str, Any], events: Sequence[Event], *, over: bool) -> StepSummary:
    closed = _last(events, kinds.STEP_CLOSED)
    end: Mapping[str, Any] = closed.body if closed else {}
    judged = [event.body for event in events if event.kind == kinds.VERDICT]  # one for each instance
    watched = [event.body for event in events if event.kind == kinds.outcome(kinds.WATCH)]
    unfinished = "not_started" if over and not events else OPEN
    contacts = [event.body for event in events if event.kind == kinds.CONTACT]
    return StepSummary(
        number=number,
        change=change_text(
            mapping_of(declared, "change"),
            text_of(declared, "summary"),
            [mapping_of(body, "facts") for body in contacts],
        ),
        outcome=text_of(end, "outcome") or unfinished,
        verdict=text_of(end, "verdict") or text_of(judged[-1] if judged else {}, "verdict") or None,
        reason=text_of(end, "reason"),
        text=text_of(end, "text"),
        outage_seconds=number_of(end, "outage_seconds"),
        failures_flagged=any(failures_flagged(body) for body in [*judged, *watched]),
        started_at=events[0].at if events else None,
        closed_at=closed.at if closed else None,
        instances=_instances(mapping_of(end, "instances"), contacts),
    )


def _instances(ends: Mapping[str, Any], contacts: Sequence[Mapping[str, Any]]) -> tuple[InstanceEnd, ...]:
    found = {text_of(body, "host"): found_value(mapping_of(body, "facts")) for body in contacts}
    return tuple(InstanceEnd(name, str(end), found.get(name)) for name, end in ends.items())


def failures_flagged(verdict: Mapping[str, Any]) -> bool:
    """Whether more than 1 % of the requests failed, by the flags of a verdict or a watch, or by a verdict's figures."""
    flags = {text_of(flag, "code") for flag in mappings_of(verdict, "flags")}
    rows = [row for row in mappings_of(verdict, "rows") if text_of(row, "metric") == "failures"]
    shares = [number_of(row, side) or 0.0 for row in rows for side in ("before", "after")]
    return FAILURES_FLAG in flags or any(share > FLAGGED_FAILURES for share in shares)


def _run_outcome(closed: Event | None, steps: Sequence[StepSummary]) -> str:
    if closed is None:
        return OPEN
    ends = [step.outcome for step in steps if step.outcome not in (OPEN, "not_started")]
    not_kept = [end for end in ends if end != "kept"]
    return text_of(closed.body, "outcome") or (not_kept or ends or ["aborted"])[0]


def _with_ends(found: Sequence[RunSummary]) -> list[RunSummary]:
    """Every run with what later ones made of it."""
    reverts: dict[str, list[tuple[int, RunSummary]]] = {}
    for place, run in enumerate(found):
        if run.reverts:
            reverts.setdefault(run.reverts, []).append((place, run))

    def after(place: int, run: str | None) -> list[RunSummary]:
        return [later for at, later in reverts.get(run or "", ()) if at > place]

    extended = {run.extends: run.run for run in found if run.extends}
    found = [replace(run, extended_by=extended.get(run.run)) for run in found]
    # A revert without a proven end is settled by whatever settles the run that it was to take back, too.
    return [_with_end(run, after(place, run.run), after(place, run.reverts)) for place, run in enumerate(found)]


def _with_end(run: RunSummary, own: Sequence[RunSummary], siblings: Sequence[RunSummary]) -> RunSummary:
    """A run with its end.

    Args:
        run: the run.
        own: the later runs that were to take it back, oldest first.
        siblings: those that were to take back the same run as this one.
    """
    back = [one for one in own if one.outcome == "reverted"]
    acted = [one.run for one in back if not one.did_nothing]
    settling = [one.run for one in (*own, *siblings) if one.outcome in SETTLING]
    doubted = bool(own) and (own[-1].outcome == OPEN or own[-1].unproven)
    return replace(
        run,
        reverted_by=acted[-1] if acted else None,
        found_back_by=back[-1].run if back and not acted else None,
        doubted_by=own[-1].run if doubted else None,
        settled_by=settling[0] if settling and (run.outcome == OPEN or run.unproven) else None,
    )


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event.kind == kind), None)
