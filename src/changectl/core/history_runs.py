"""From events to runs: what was changed, by whom, with what outcome. Pure: events in, values out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core import history_events as kinds
from changectl.core.history_events import mapping_of, mappings_of, number_of, text_of, texts_of
from changectl.core.ports import Event
from changectl.core.settings import ABSENT

OPEN = "open"  # outcome of a run or step whose end is not recorded
FLAGGED_FAILURES = 0.01
KEPT = ("kept", "kept_unjudged")
SETTLING = ("reverted", "kept_unjudged")  # how a run has to end to settle the one that it is about; a refusal does not
NOTHING_TO_DO = "nothing_to_do"  # the reason of a step that found its value in place already


@dataclass(frozen=True, slots=True)
class ChangeText:
    """The one change of a step, as its plan declared it."""

    kind: str
    name: str
    before: str | None  # None with `asserted`: absent; without: the plan does not say
    after: str | None  # None: absent
    asserted: bool

    @property
    def in_words(self) -> str:
        """The change without its kind: `max-num-seqs: 64 -> 128`."""
        before = _value(self.before) if self.asserted else "whatever it was"
        return f"{self.name}: {before} -> {_value(self.after)}"

    def __str__(self) -> str:
        return f"{self.kind} {self.in_words}"


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
    failures_flagged: bool  # more than 1 % of the requests failed, before or after
    started_at: str | None
    closed_at: str | None

    @property
    def changed_something(self) -> bool:
        """Whether the step was kept and is why the configuration is as it is."""
        return self.outcome in KEPT and self.reason != NOTHING_TO_DO


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
    steps: tuple[StepSummary, ...]
    reverts: str | None  # the run that this one takes back
    reverted_by: str | None  # the run that took this one back
    settled_by: str | None = None  # of a run that was cut off: the run that took it back, or accepted what it left

    @property
    def unfinished(self) -> bool:
        """Whether it was begun, its end is not recorded, and nobody settled it since."""
        return self.outcome == OPEN and self.settled_by is None

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
    return _with_reverts([summarise(own) for own in by_run.values()])


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
        steps=steps,
        reverts=text_of(body, "reverts") or None,
        reverted_by=None,
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
    unfinished = "not_started" if over and not events else OPEN
    return StepSummary(
        number=number,
        change=change_text(mapping_of(declared, "change"), text_of(declared, "summary")),
        outcome=text_of(end, "outcome") or unfinished,
        verdict=text_of(end, "verdict") or text_of(judged[-1] if judged else {}, "verdict") or None,
        reason=text_of(end, "reason"),
        text=text_of(end, "text"),
        outage_seconds=number_of(end, "outage_seconds"),
        failures_flagged=any(failures_flagged(body) for body in judged),
        started_at=events[0].at if events else None,
        closed_at=closed.at if closed else None,
    )


def change_text(body: Mapping[str, Any], summary: str = "") -> ChangeText:
    """The change of a step of `run.opened`; `summary` is the plan's own wording of it."""
    values = [body.get(name) for name in ("from", "to")]
    before, after = (None if value is None or value == ABSENT else str(value) for value in values)
    # An asserted absence and no assertion are both recorded as null; only the wording tells them apart.
    asserted = "from" in body and (before is not None or "whatever it is" not in summary)
    return ChangeText(text_of(body, "kind"), text_of(body, "name"), before, after, asserted)


def failures_flagged(verdict: Mapping[str, Any]) -> bool:
    """Whether more than 1 % of the requests failed, by the verdict's own flags or by its figures."""
    flags = {text_of(flag, "code") for flag in mappings_of(verdict, "flags")}
    rows = [row for row in mappings_of(verdict, "rows") if text_of(row, "metric") == "failures"]
    shares = [number_of(row, side) or 0.0 for row in rows for side in ("before", "after")]
    return "failures_above_1_percent" in flags or any(share > FLAGGED_FAILURES for share in shares)


def _run_outcome(closed: Event | None, steps: Sequence[StepSummary]) -> str:
    if closed is None:
        return OPEN
    ends = [step.outcome for step in steps if step.outcome not in (OPEN, "not_started")]
    not_kept = [end for end in ends if end != "kept"]
    return text_of(closed.body, "outcome") or (not_kept or ends or ["aborted"])[0]


def _with_reverts(found: list[RunSummary]) -> list[RunSummary]:
    settling = {run.reverts: run for run in found if run.reverts and run.outcome in SETTLING}
    return [_with_its_end(run, settling) for run in found]


def _with_its_end(run: RunSummary, settling: Mapping[str, RunSummary]) -> RunSummary:
    own = settling.get(run.run)
    # A revert that was cut off is settled by whatever settles the run that it was to take back, too.
    end = own or settling.get(run.reverts or "")
    return dataclasses.replace(
        run,
        reverted_by=own.run if own and own.outcome == "reverted" else None,
        settled_by=end.run if end and run.outcome == OPEN else None,
    )


def _last(events: Sequence[Event], kind: str) -> Event | None:
    return next((event for event in reversed(events) if event.kind == kind), None)


def _value(value: str | None) -> str:
    return ABSENT if value is None else value or '""'
