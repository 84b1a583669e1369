"""What the controller has of a run's saved configuration, and how it is put back by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from changectl.core.errors import ChangectlError
from changectl.core.history.saved import SavedFile, SnapshotCopy
from changectl.reports._blocks import Block, Command, Heading, Line, Table
from changectl.reports._commands import told
from changectl.reports._runs import FORMAT

Found = Sequence[tuple[SnapshotCopy, Sequence[SavedFile], Path | None]]  # with the folder that they were laid into
Lost = Sequence[tuple[SnapshotCopy, ChangectlError]]  # the copies that could not be read


def as_json(found: Found, lost: Lost) -> dict[str, Any]:
    """The document of `changectl saved --json`; without the bytes."""
    return {
        "format": FORMAT,
        "saved": [
            {
                "run": kept.run,
                "step": kept.step,
                "instance": kept.instance,
                "folder": None if folder is None else str(folder),
                "files": [_file_json(file, folder) for file in files],
            }
            for kept, files, folder in found
        ],
        "lost": [
            {"run": copy.run, "step": copy.step, "instance": copy.instance, "reason": error.reason,
             "message": str(error)}
            for copy, error in lost
        ],
    }  # fmt: skip


def _file_json(file: SavedFile, folder: Path | None) -> dict[str, Any]:
    facts = file.facts
    return {
        "path": file.path,
        "place": file.place,
        "exists": file.data is not None,
        "sha256": facts.sha256,
        "size": facts.size,
        "owner": file.owner,
        "group": file.group,
        "mode": file.mode,
        "attributes": sorted(facts.xattrs or {}),
        "laid_into": None if folder is None or file.data is None else str(folder / "files" / file.inside),
        "put_back": file.put_back(_source(file)),
    }


def as_blocks(found: Found, lost: Lost) -> list[Block]:
    """A table for each instance; with the files laid out, the commands that put them back."""
    blocks: list[Block] = []
    for kept, files, folder in found:
        blocks.append(Heading(f"{kept.instance}, as it was before step {kept.step} of {kept.run}", 2))
        blocks.append(Table(("file", "owner", "mode", "bytes"), [_row(file) for file in files]))
        if folder is not None:
            blocks += _laid(kept, files, folder)
    for copy, error in lost:
        blocks.append(Heading(f"{copy.instance}, as it was before step {copy.step} of {copy.run}", 2))
        blocks += told(f"LOST: {error}", "bad")
    if found and found[0][2] is None:
        blocks.append(Line("the files themselves, laid into a new folder: add --to FOLDER", "quiet"))
    return blocks


def _laid(kept: SnapshotCopy, files: Sequence[SavedFile], folder: Path) -> list[Block]:
    blocks: list[Block] = [
        Line(f"laid into {folder / 'files'}; the process as it ran and more in {folder / 'saved.json'}"),
        Line(f"on {kept.instance}, once the files are there, in a folder that only root may enter:"),
    ]
    for file in files:
        command = file.put_back(_source(file))
        if command is None:
            text = f"- {file.place} did not exist: if it is there now, look whose it is before you take it away"
            blocks.append(Line(text, "warning"))
        else:
            blocks.append(Command(command))
        if file.facts.xattrs:
            names = ", ".join(sorted(file.facts.xattrs))
            blocks.append(Line(f"- it had attributes, too; their values are in saved.json: {names}", "warning"))
    return blocks


def _source(file: SavedFile) -> str:
    return f"files/{file.inside}"


def _row(file: SavedFile) -> tuple[str, str, str, str]:
    if file.data is None:
        return file.path, "-", "-", "did not exist"
    return file.path, f"{file.owner or '?'}:{file.group or '?'}", file.mode or "?", str(len(file.data))
