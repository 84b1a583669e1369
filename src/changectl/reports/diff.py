"""The redacted differences that a run made or wanted to make, file by file."""

from __future__ import annotations

from typing import Any

from changectl.core.history import RunStory
from changectl.core.history_events import text_of
from changectl.core.ports import Json
from changectl.reports._blocks import Block, Heading, Line, Verbatim
from changectl.reports._runs import FORMAT


def as_json(story: RunStory, step: int | None = None) -> dict[str, Any]:
    """The document of `changectl diff RUN[/STEP] --json`."""
    edits = [_edit_json(number, edit) for number, edit in _chosen(story, step)]
    return {"format": FORMAT, "run": story.run.run, "edits": edits}


def as_blocks(story: RunStory, step: int | None = None) -> list[Block]:
    """Every edit under its step, host and file."""
    edits = _chosen(story, step)
    if not edits:
        return [Line(f"run {story.run.run} recorded no edit", "quiet")]
    blocks: list[Block] = []
    for number, edit in edits:
        place = f"{story.run.run}/{number} {text_of(edit, 'host')}: {text_of(edit, 'path')}"
        blocks += [Heading(place, 2), Verbatim(text_of(edit, "diff") or "(no difference)")]
    return blocks


def _chosen(story: RunStory, step: int | None) -> list[tuple[int, Json]]:
    return [(number, edit) for number, edit in story.edits if step in (None, number)]


def _edit_json(step: int, edit: Json) -> dict[str, Any]:
    return {
        "step": step,
        "host": text_of(edit, "host"),
        "path": text_of(edit, "path"),
        "before_sha": text_of(edit, "before_sha") or None,
        "after_sha": text_of(edit, "after_sha") or None,
        "diff": text_of(edit, "diff"),
    }
