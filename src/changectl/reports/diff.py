"""The redacted differences that a run made or wanted to make, file by file."""

from __future__ import annotations

from typing import Any

from changectl.core.history import RunStory
from changectl.core.history_events import text_of
from changectl.core.ports import Json
from changectl.reports._blocks import Block, Heading, Line, Verbatim
from changectl.reports._runs import FORMAT


def as_json(story: RunStory) -> dict[str, Any]:
    """The document of `changectl diff RUN --json`."""
    return {"format": FORMAT, "run": story.run.run, "edits": [_edit_json(step, edit) for step, edit in story.edits]}


def as_blocks(story: RunStory) -> list[Block]:
    """Every edit under its step, host and file."""
    if not story.edits:
        return [Line(f"run {story.run.run} recorded no edit", "quiet")]
    blocks: list[Block] = []
    for step, edit in story.edits:
        place = f"{story.run.run}/{step} {text_of(edit, 'host')}: {text_of(edit, 'path')}"
        blocks += [Heading(place, 2), Verbatim(text_of(edit, "diff") or "(no difference)")]
    return blocks


def _edit_json(step: int, edit: Json) -> dict[str, Any]:
    return {
        "step": step,
        "host": text_of(edit, "host"),
        "path": text_of(edit, "path"),
        "before_sha": text_of(edit, "before_sha") or None,
        "after_sha": text_of(edit, "after_sha") or None,
        "diff": text_of(edit, "diff"),
    }
