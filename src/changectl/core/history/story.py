"""The story of one run: what, why, who, the diff, before and after, the reasons, and what happened when."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from changectl.core.history import events as kinds
from changectl.core.history.events import items_of, mappings_of, number_of, text_of
from changectl.core.history.runs import RunSummary, StepSummary, summarise
from changectl.core.ports import Event, Json

EntryState = Literal["done", "failed", "unfinished", "noted"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened. `unfinished`: it was begun, and nothing says how it ended."""

    at: str
    offset_seconds: float  # since the run was opened
    step: int
    action: str
    host: str
    state: EntryState
    duration_seconds: float | None  # from intent to outcome
    detail: str


@dataclass(frozen=True, slots=True)
class StepStory:
    """All that was recorded about one step. Bodies are those of the events (docs/reference/journal.md)."""

    summary: StepSummary
    expect: Any
    accept: Any
    prechecks: tuple[Json, ...]
    edits: tuple[Json, ...]
    reasons: tuple[Json, ...]
    trials: tuple[Json, ...]  # the verdict on each instance that was tried, whole
    rows: tuple[Json, ...]
    flags: tuple[Json, ...]
    watched: tuple[Json, ...]
    effective: tuple[Json, ...]
    ready: tuple[Json, ...]
    measurements: tuple[Json, ...]
    checks: tuple[Json, ...]
    verify: tuple[Json, ...]
    evidence: tuple[Json, ...]
    calibrations: tuple[Json, ...]
    written: frozenset[str]  # the hosts on which a write was begun


@dataclass(frozen=True, slots=True)
class RunStory:
    """One run from its opening to its end."""

    run: RunSummary
    plan_text: str
    workload: str  # its name; "": not recorded
    model: str  # the model's name; "": not recorded
    prechecks: tuple[Json, ...]  # those of the run as a whole
    text: str  # how a revert ended, for people
    ready: tuple[Json, ...]  # of a revert, which has no steps
    verify: tuple[Json, ...]
    steps: tuple[StepStory, ...]
    timeline: tuple[Entry, ...]

    @property
    def edits(self) -> list[tuple[int, Json]]:
        """Every edit with the number of its step, in the order recorded."""
        return [(step.summary.number, edit) for step in self.steps for edit in step.edits]


def run_story(events: Sequence[Event]) -> RunStory:
    """The story of the run whose events these are, oldest first.

    Raises:
        ValueError: no events.
    """
    if not events:
        raise ValueError("a run without events has no story")
    run = summarise(events)
    opened = next((event.body for event in events if event.kind == kinds.RUN_OPENED), {})
    declared = mappings_of(opened, "steps")
    steps = []
    for summary in run.steps:
        own = [event for event in events if event.step == summary.number]
        body = declared[summary.number - 1] if summary.number <= len(declared) else {}
        steps.append(_step_story(summary, body, own))
    whole = [event for event in events if event.step == 0]
    ends = [event.body for event in whole if event.kind == kinds.outcome(kinds.REVERT)]
    return RunStory(
        run=run,
        plan_text=text_of(opened, "plan_text"),
        workload=text_of(opened, "workload"),
        model=text_of(opened, "model"),
        prechecks=_prechecks(whole),
        text=text_of(ends[-1], "text") if ends else "",
        ready=_bodies(whole, kinds.outcome(kinds.READY)),
        verify=_bodies(whole, kinds.outcome(kinds.VERIFY)),
        steps=tuple(steps),
        timeline=tuple(timeline(events)),
    )


def _step_story(summary: StepSummary, declared: Json, events: Sequence[Event]) -> StepStory:
    verdicts = _bodies(events, kinds.VERDICT)  # one for each instance that was tried
    watched = _bodies(events, kinds.outcome(kinds.WATCH))
    return StepStory(
        summary=summary,
        expect=declared.get("expect"),
        accept=declared.get("accept"),
        prechecks=_prechecks(events),
        edits=_bodies(events, kinds.EDIT),
        reasons=_parts(verdicts, "reasons"),
        trials=verdicts,
        rows=tuple(row for row in _parts(verdicts, "rows") if "metric" in row),
        flags=_parts([*verdicts, *watched], "flags"),
        watched=watched,
        effective=_bodies(events, kinds.outcome(kinds.EFFECTIVE)),
        ready=_bodies(events, kinds.outcome(kinds.READY)),
        measurements=_bodies(events, kinds.outcome(kinds.MEASURE)) + _bodies(events, kinds.outcome(kinds.OBSERVE)),
        checks=_bodies(events, kinds.outcome(kinds.CHECKS)),
        verify=_bodies(events, kinds.outcome(kinds.VERIFY)),
        evidence=_bodies(events, kinds.outcome(kinds.EVIDENCE)),
        calibrations=_bodies(events, kinds.CALIBRATION),
        written=frozenset(text_of(body, "host") for body in _bodies(events, kinds.intent(kinds.WRITE))),
    )


def _prechecks(events: Sequence[Event]) -> tuple[Json, ...]:
    return _parts(_bodies(events, kinds.PRECHECK), "results")


def _parts(bodies: Sequence[Json], name: str) -> tuple[Json, ...]:
    """The lists of that name in all bodies, each item with its body's host; a bare sentence becomes a reason."""
    return tuple(
        {"host": text_of(body, "host"), **(item if isinstance(item, Mapping) else {"code": "", "text": str(item)})}
        for body in bodies
        for item in items_of(body, name)
    )


def _bodies(events: Sequence[Event], kind: str) -> tuple[Json, ...]:
    return tuple(event.body for event in events if event.kind == kind)


def timeline(events: Sequence[Event]) -> list[Entry]:
    """What happened when: an intent and its outcome are one entry, placed where the action began."""
    start = _time(events[0].at)
    entries: list[Entry] = []
    begun: dict[int, Event] = {}  # the intents without an outcome so far, by the place of their entry
    for event in events:
        action, _, part = event.kind.rpartition(".")
        if part == "intent":
            begun[len(entries)] = event
            entries.append(_entry(event, action, start, "unfinished", None))
        elif part == "outcome":
            state = _end_state(event.body)
            index = _intent_of(event, begun)
            if index is None:
                entries.append(_entry(event, action, start, state, number_of(event.body, "seconds")))
                continue
            first = begun.pop(index)
            whole = dataclasses.replace(event, at=first.at, body={**first.body, **event.body})
            seconds = (_time(event.at) - _time(first.at)).total_seconds()
            entries[index] = _entry(whole, action, start, state, seconds)
        else:
            entries.append(_entry(event, event.kind, start, "noted", None))
    return entries


def _end_state(body: Json) -> EntryState:
    if False in (body.get("ok"), body.get("verified")):
        return "failed"
    return "noted" if body.get("armed") is False else "done"  # what was not armed was not done


def _intent_of(event: Event, begun: Mapping[int, Event]) -> int | None:
    """Where the entry of this outcome's intent stands: of the same host, or the latest where one of them names none."""
    action = event.kind.rpartition(".")[0]
    host = text_of(event.body, "host")
    same = [
        (index, text_of(first.body, "host"))
        for index, first in begun.items()
        if first.step == event.step and first.kind.rpartition(".")[0] == action
    ]
    fitting = [index for index, its in same if its == host] or [index for index, its in same if not (its and host)]
    return fitting[-1] if fitting else None


def _entry(event: Event, action: str, start: datetime, state: EntryState, seconds: float | None) -> Entry:
    offset = (_time(event.at) - start).total_seconds()
    return Entry(event.at, offset, event.step, action, text_of(event.body, "host"), state, seconds, _detail(event.body))


# What of a body is worth a line, in this order; everything else is in the journal.
_TELLING = (
    "phase", "path", "opinion", "verdict", "by", "found", "decision", "outcome", "keeper", "move", "why", "service",
    "deadline_source", "message", "reason",
)  # fmt: skip


def _detail(body: Json) -> str:
    told = ", ".join(text_of(body, name) for name in _TELLING if text_of(body, name))
    return f"not armed: {told}" if body.get("armed") is False else told


def _time(at: str) -> datetime:
    return datetime.fromisoformat(at)
