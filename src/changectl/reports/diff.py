"""The redacted differences that a run made or wanted to make, file by file."""

from __future__ import annotations

from typing import Any

from changectl.core.history.events import text_of
from changectl.core.history.reading import EditEnd, RunStory, StepStory, edit_end
from changectl.core.ports import Json
from changectl.reports._blocks import Block, Command, Heading, Line, Tone, Verbatim
from changectl.reports._runs import FORMAT

_TONES: dict[str, Tone] = {"in_force": "good", "not_known": "bad"}


def as_json(story: RunStory, step: int | None = None) -> dict[str, Any]:
    """The document of `changectl diff RUN[/STEP] --json`."""
    edits = [_edit_json(each, edit, edit_end(story.run, each, edit)) for each, edit in _chosen(story, step)]
    return {"format": FORMAT, "run": story.run.run, "edits": edits}


def as_blocks(story: RunStory, step: int | None = None) -> list[Block]:
    """Every edit under its step, host and file, with what became of it."""
    run, edits = story.run, _chosen(story, step)
    if not edits:
        none = f"run {run.run} recorded no edit"
        if not run.reverts:
            return [Line(none, "quiet")]
        return [Command(f"changectl diff {run.reverts}", f"{none}; what it was to take back", "quiet")]
    blocks: list[Block] = []
    for each, edit in edits:
        place = f"{run.run}/{each.summary.number} {text_of(edit, 'host')}: {text_of(edit, 'path')}"
        end = edit_end(run, each, edit)
        blocks += [Heading(place, 2), Line(_in_words(end, each), _TONES.get(end.state, "plain"))]
        blocks.append(Verbatim(text_of(edit, "diff") or "(no difference)"))
    return blocks


def _in_words(end: EditEnd, step: StepStory) -> str:
    """What became of an edit, and how its step ended."""
    by = f" by run {end.by}" if end.by else ""
    told = {
        "in_force": "in force, as far as the record goes",
        "taken_back": f"taken back{by or ' in the same run'}",
        "never_applied": "never applied",
        "nothing_to_do": "nothing to do: the file said so already",
        "not_known": f"whether it is in force is not known{f' since run {end.by}' if end.by else ''}",
    }[end.state]
    words = dict.fromkeys(word for word in (step.summary.outcome, step.summary.reason) if word)
    return f"{told}; its step ended: {', '.join(words)}"


def _chosen(story: RunStory, step: int | None) -> list[tuple[StepStory, Json]]:
    return [(each, edit) for each in story.steps if step in (None, each.summary.number) for edit in each.edits]


def _edit_json(step: StepStory, edit: Json, end: EditEnd) -> dict[str, Any]:
    return {
        "step": step.summary.number,
        "host": text_of(edit, "host"),
        "path": text_of(edit, "path"),
        "before_sha": text_of(edit, "before_sha") or None,
        "after_sha": text_of(edit, "after_sha") or None,
        "state": end.state,
        "by": end.by,
        "outcome": step.summary.outcome,
        "diff": text_of(edit, "diff"),
    }
