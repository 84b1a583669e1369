"""The list of runs, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from changectl.core.history.reading import RunSummary, StepSummary
from changectl.reports import _words as words
from changectl.reports._blocks import Block, Line, Table
from changectl.reports._runs import FORMAT, run_json

_HEADINGS = ("run", "when (UTC)", "service", "change", "outcome", "who", "ticket", "why")


def as_json(runs: Sequence[RunSummary]) -> dict[str, Any]:
    """The document of `changectl history --json`."""
    return {"format": FORMAT, "runs": [run_json(run) for run in runs]}


def as_blocks(runs: Sequence[RunSummary], recorded: int | None = None) -> list[Block]:
    """One row for each step; a run without steps has one, too.

    Args:
        runs: those that are shown.
        recorded: how many there are in the record; None: those that are shown.
    """
    if not runs:
        none = f"none of the {recorded} recorded runs is such a one" if recorded else "nothing has been recorded yet"
        return [Line(none, "quiet")]
    rows = [_row(run, step) for run in runs for step in (run.steps or (None,))]
    return [Table(_HEADINGS, rows), *_flags(runs)]


def _row(run: RunSummary, step: StepSummary | None) -> list[str]:
    what = f"revert of {run.reverts}" if run.reverts else step.change.in_words if step else ""
    return [
        f"{run.run}/{step.number}" if step else run.run,
        words.minute(run.opened_at),
        run.service,
        what,
        _end(run, step),
        run.actor,
        run.ticket or "",
        f"{run.reason} (incident: {run.incident})" if run.incident else run.reason,
    ]


def _end(run: RunSummary, step: StepSummary | None) -> str:
    """The outcome, the verdict and the reason's word, each once; then what later runs made of it."""
    outcome, reason = (step.outcome, step.reason) if step else (run.outcome, run.end_reason)
    end = list(dict.fromkeys(word for word in (outcome, step.verdict if step else None, reason) if word))
    if run.settled_by:
        end.append(f"{'reverted' if run.reverted_by else 'settled'} by {run.reverted_by or run.settled_by}")
    elif run.needs_person:
        end.append("a person is needed")
    else:
        end += words.later(run)
    return ", ".join(end)


def _flags(runs: Sequence[RunSummary]) -> list[Block]:
    flagged = [f"{run.run}/{step.number}" for run in runs for step in run.steps if step.failures_flagged]
    return [Line(f"more than 1 % of the requests failed: {', '.join(flagged)}", "warning")] if flagged else []
