"""The end of a run on one screen, or as one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from changectl.cli._present import print_blocks
from changectl.core.history.places import host_folders
from changectl.core.history.reading import run_story
from changectl.core.lifecycle import Ending
from changectl.core.ports import Event
from changectl.reports import ending as report
from changectl.reports import show
from changectl.reports.printer import Printer


def show_run(
    events: Sequence[Event],
    ending: Ending,
    exit_code: int,
    printer: Printer,
    *,
    as_json: bool,
    reverted: Sequence[Event] = (),
) -> None:
    """Print what a run did and how it ended.

    Args:
        events: of the run.
        ending: its end.
        exit_code: of the command.
        printer: where to.
        as_json: as one document.
        reverted: the events of the run that it was to take back, in whose folders the way back lies.
    """
    if as_json:
        document = run_document(events, ending, exit_code)
        printer.line(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))
        return
    folders = host_folders([*reverted, *events])
    blocks = report.as_blocks(run_story(events), exit_code, folders, once=printer.on_terminal)
    print_blocks(blocks, printer)


def run_document(events: Sequence[Event], ending: Ending, exit_code: int) -> dict[str, Any]:
    """The JSON document of a run that has just ended."""
    return {**show.as_json(run_story(events)), "reason": ending.reason, "exit_code": exit_code}
