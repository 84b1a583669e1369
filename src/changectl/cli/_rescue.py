"""Opens the copies of a run's saved configuration, and lays them out where that is asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from changectl.core.errors import ChangectlError
from changectl.core.history.saved import SavedFile, SnapshotCopy, read_copy
from changectl.store.laying_out import lay_out, new_folder

_OF_THE_KEY = "key_"  # how the reasons begin that hold for every copy


@dataclass(frozen=True)
class Rescued:
    """What came of a run's copies: those that could be read, and why others could not."""

    found: Sequence[tuple[SnapshotCopy, Sequence[SavedFile], Path | None]]
    lost: Sequence[tuple[SnapshotCopy, ChangectlError]]


def rescue(copies: Sequence[SnapshotCopy], read: Callable[[str], bytes], folder: Path | None) -> Rescued:
    """Read copies; with a folder, lay each into one of its own there. A damaged one keeps nobody from the others.

    Args:
        copies: which.
        read: the plain bytes of a copy, by its digest.
        folder: where to; None: they are only read.

    Raises:
        InputError: the folder is there already, or cannot be written.
        ChangectlError: the key is missing, wrong or exposed, which holds for all copies.
    """
    opened: list[tuple[SnapshotCopy, list[SavedFile], dict[str, Any]]] = []
    lost: list[tuple[SnapshotCopy, ChangectlError]] = []
    for copy in copies:
        try:
            opened.append((copy, *_opened(copy, read)))
        except ChangectlError as error:
            if error.reason.startswith(_OF_THE_KEY):
                raise
            lost.append((copy, error))
    if folder is None or not opened:
        return Rescued([(copy, files, None) for copy, files, _ in opened], lost)
    new_folder(folder)
    return Rescued([(copy, files, _laid(copy, files, rest, folder)) for copy, files, rest in opened], lost)


def _opened(copy: SnapshotCopy, read: Callable[[str], bytes]) -> tuple[list[SavedFile], dict[str, Any]]:
    plain = read(copy.digest)
    try:
        return read_copy(plain)
    except (ValueError, KeyError, TypeError) as error:
        message = f"the copy {copy.digest} of {copy.instance} cannot be read: {error}"
        raise ChangectlError(message, reason="snapshot_changed") from error


def _laid(copy: SnapshotCopy, files: Sequence[SavedFile], rest: dict[str, Any], folder: Path) -> Path:
    place = folder / inside(copy.instance) / str(copy.step)
    contents = {file.inside: file.data for file in files if file.data is not None}
    lay_out(place, contents, {"run": copy.run, "step": copy.step, "instance": copy.instance, **rest})
    return place


def inside(instance: str) -> str:
    """An instance's name as the name of one folder, which is neither the one above it nor elsewhere."""
    name = quote(instance, safe="", errors="surrogatepass")
    return name.replace(".", "%2E") if set(name) <= {"."} else name
