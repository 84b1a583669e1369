"""What became of an edit that a run recorded: a difference alone does not say whether it ever was, or is, in force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from changectl.core.history.events import text_of
from changectl.core.history.runs import IN_PART, NOTHING_TO_DO, OPEN, RunSummary
from changectl.core.history.story import StepStory
from changectl.core.ports import Json

EditState = Literal["in_force", "taken_back", "never_applied", "nothing_to_do", "not_known"]


@dataclass(frozen=True, slots=True)
class EditEnd:
    """What became of one edit, by the record. `by`: the later run that saw to it; None: the run itself, or nobody."""

    state: EditState
    by: str | None = None


def edit_end(run: RunSummary, step: StepStory, edit: Json) -> EditEnd:
    """What became of an edit of a step."""
    summary = step.summary
    host = text_of(edit, "host")
    own = {one.name: one.outcome for one in summary.instances}.get(host, summary.outcome)
    same = "before_sha" in edit and edit["before_sha"] == edit.get("after_sha")
    if same or summary.reason == NOTHING_TO_DO:
        return EditEnd("nothing_to_do")
    if host not in step.written or summary.outcome in ("refused", "aborted"):
        return EditEnd("never_applied")
    if back := run.reverted_by or run.found_back_by:
        return EditEnd("taken_back", back if own != "reverted" else None)
    if own == "reverted":
        return EditEnd("taken_back")
    if own in IN_PART and run.outcome != OPEN and run.doubted_by is None:
        return EditEnd("in_force")
    return EditEnd("not_known", run.doubted_by or run.settled_by)
