"""History: from the journal's events to runs and their stories, and how a person finds one among them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

from changectl.core.errors import InputError, Problem
from changectl.core.history.change import ChangeText
from changectl.core.history.edits import EditEnd, EditState, edit_end
from changectl.core.history.events import (
    ARM,
    CAPTURE,
    CHECKS,
    CONTACT,
    DISARM,
    EDIT,
    EFFECTIVE,
    EVIDENCE,
    LOCK_BROKEN,
    LOCK_TAKEN_OVER,
    MEASURE,
    OUTCOMES,
    PRECHECK,
    READY,
    RESTART,
    RESTORE,
    REVERT,
    RUN_CLOSED,
    RUN_OPENED,
    STEP_CLOSED,
    STEP_STARTED,
    SUMMARY_KINDS,
    VERDICT,
    VERIFY,
    WRITE,
    intent,
    outcome,
)
from changectl.core.history.mix import Mix, mixes
from changectl.core.history.out_of_service import OutOfService
from changectl.core.history.runs import OPEN, RunSummary, StepSummary, open_work, runs, still_out
from changectl.core.history.story import Entry, RunStory, StepStory, run_story

__all__ = [
    "ARM",
    "CAPTURE",
    "CHECKS",
    "CONTACT",
    "DISARM",
    "EDIT",
    "EFFECTIVE",
    "EVIDENCE",
    "LOCK_BROKEN",
    "LOCK_TAKEN_OVER",
    "MEASURE",
    "OPEN",
    "OUTCOMES",
    "PRECHECK",
    "READY",
    "RESTART",
    "RESTORE",
    "REVERT",
    "RUN_CLOSED",
    "RUN_OPENED",
    "STEP_CLOSED",
    "STEP_STARTED",
    "SUMMARY_KINDS",
    "VERDICT",
    "VERIFY",
    "WRITE",
    "ChangeText",
    "EditEnd",
    "EditState",
    "Entry",
    "Filters",
    "Mix",
    "RunStory",
    "RunSummary",
    "ServiceStatus",
    "StepStory",
    "StepSummary",
    "choose",
    "edit_end",
    "intent",
    "moment",
    "open_work",
    "outcome",
    "resolve_run",
    "run_story",
    "runs",
    "services",
    "split_run",
]

_SUGGESTIONS = 5


@dataclass(frozen=True, slots=True)
class Filters:
    """Which runs to show; what is not given does not narrow."""

    service: str | None = None
    host: str | None = None
    outcome: str | None = None  # of the run or one of its steps
    verdict: str | None = None
    since: datetime | None = None
    until: datetime | None = None  # exclusive
    actor: str | None = None  # user@host, or the user alone
    change: str | None = None  # the name of what was changed, in any spelling
    alike: Collection[str] = ()  # other names of the same setting
    limit: int | None = None

    def admits(self, run: RunSummary) -> bool:
        """Whether the run is to be shown."""
        opened = datetime.fromisoformat(run.opened_at)
        return (
            self.service in (None, run.service)
            and (self.host is None or self.host in run.hosts)
            and (self.outcome is None or self.outcome in (run.outcome, *(step.outcome for step in run.steps)))
            and (self.verdict is None or self.verdict in {step.verdict for step in run.steps})
            and (self.since is None or opened >= self.since)
            and (self.until is None or opened < self.until)
            and (self.actor is None or self.actor in (run.actor, run.actor.rpartition("@")[0]))
            and (self.change is None or any(step.change.is_about(self.change, self.alike) for step in run.steps))
        )


def choose(found: Iterable[RunSummary], filters: Filters) -> list[RunSummary]:
    """The runs that the filters admit, newest first."""
    admitted = [run for run in reversed(list(found)) if filters.admits(run)]
    return admitted if filters.limit is None else admitted[: filters.limit]


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """Where one service stands."""

    service: str
    last: RunSummary  # the newest run, whatever became of it
    standing: RunSummary | None  # the newest run whose change is still in force
    open_runs: tuple[str, ...]  # begun, no end recorded, and not settled since
    needs_person: tuple[RunSummary, ...]  # ended with exit code 6, and not settled since
    out: tuple[tuple[str, OutOfService], ...]  # run -> an instance that it left out of service, by the record
    kept_unjudged: tuple[str, ...]  # RUN/STEP, or RUN: accepted as found; not taken back, and no later run was judged
    mixes: tuple[Mix, ...] = ()  # what is not the same on all instances


def services(found: Iterable[RunSummary]) -> list[ServiceStatus]:
    """Every service that was ever changed, by name."""
    by_service: dict[str, list[RunSummary]] = {}
    for run in found:
        by_service.setdefault(run.service, []).append(run)
    return [_status(name, own) for name, own in sorted(by_service.items())]


def _status(name: str, own: Sequence[RunSummary]) -> ServiceStatus:
    in_force = [run for run in own if run.reverted_by is None and run.found_back_by is None]
    standing = [run for run in in_force if not run.reverts and any(step.changed_something for step in run.steps)]
    judged = [place for place, run in enumerate(in_force) if any(step.judged_and_kept for step in run.steps)]
    since = (
        in_force[judged[-1] :] if judged else in_force
    )  # a run that was judged and kept was judged on what stood there
    unjudged = [f"{run.run}/{step.number}" for run in since for step in run.steps if step.kept_unjudged]
    accepted = [run.run for run in since if run.reverts and run.outcome == "kept_unjudged"]
    return ServiceStatus(
        service=name,
        last=own[-1],
        standing=standing[-1] if standing else None,
        open_runs=tuple(run.run for run in own if run.unfinished),
        needs_person=tuple(run for run in own if run.needs_person),
        out=still_out(own),
        kept_unjudged=(*unjudged, *accepted),
        mixes=tuple(mixes(in_force)),
    )


def split_run(text: str) -> tuple[str, int | None]:
    """RUN or RUN/STEP as typed. Raises InputError when STEP is no number from 1 on."""
    run, slash, step = text.partition("/")
    if not slash:
        return run, None
    if not (step.isascii() and step.isdigit() and int(step) > 0):
        raise InputError(Problem(f'"{step}" is no step of a run', hint=f"write {run}/1 for its first step"))
    return run, int(step)


def resolve_run(text: str, known: Sequence[str]) -> str:
    """The run meant by its identifier or the beginning of it.

    Args:
        text: as typed.
        known: all runs, oldest first.

    Raises:
        InputError: none or more than one begins so; the nearest are named.
    """
    if text in known:
        return text
    matches = [run for run in known if text and run.startswith(text)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        hint = "write more of it: " + ", ".join(matches[-_SUGGESTIONS:])
        raise InputError(Problem(f'{len(matches)} runs begin with "{text}"', hint=hint))
    near = get_close_matches(text, known, n=_SUGGESTIONS, cutoff=0.5) or list(reversed(known))[:_SUGGESTIONS]
    hint = f"the nearest: {', '.join(near)}" if near else "nothing has been recorded yet"
    raise InputError(Problem(f'there is no run "{text}"', hint=hint))


def moment(text: str, now: datetime, *, end: bool = False) -> datetime:
    """A point in time as typed: `2026-11-30`, `2026-11-30T08:15`, or `7d`, `12h`, `30m` ago; UTC unless it says so.

    Args:
        text: as typed.
        now: the present, for the relative ones.
        end: a date alone means the end of that day instead of its beginning.

    Raises:
        InputError: not understood.
    """
    units = {"d": "days", "h": "hours", "m": "minutes", "w": "weeks"}
    number, unit = text[:-1], text[-1:]
    try:
        if unit in units and number.isascii() and number.isdigit():
            return now - timedelta(**{units[unit]: int(number)})
        found = datetime.fromisoformat(text)
        day = timedelta(days=1) if end and len(text) <= len("2026-11-30") else timedelta()
        return (found if found.tzinfo else found.replace(tzinfo=UTC)) + day
    except (ValueError, OverflowError):
        hint = "write a date (2026-11-30), a time (2026-11-30T08:15) or how long ago (7d, 12h, 30m)"
        raise InputError(Problem(f'"{text}" is not a time', hint=hint)) from None
