"""Opens the copies of a run's saved configuration, and lays them out where that is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from changectl.core.errors import ChangectlError
from changectl.core.saved import Kept, SavedFile, read_copy
from changectl.store.laying_out import lay_out, new_folder

Copies = Sequence[tuple[Kept, bytes]]


def rescue(copies: Copies, folder: Path | None) -> list[tuple[Kept, list[SavedFile], Path | None]]:
    """Read copies; with a folder, lay each into one of its own there.

    Raises:
        InputError: the folder is there already, or cannot be written.
        ChangectlError: a copy is not one of ours.
    """
    if folder is not None:
        new_folder(folder)
    found = []
    for kept, plain in copies:
        try:
            files, rest = read_copy(plain)
        except (ValueError, KeyError, TypeError) as error:
            message = f"the copy {kept.digest} of {kept.instance} cannot be read: {error}"
            raise ChangectlError(message, reason="snapshot_changed") from error
        place = None if folder is None else folder / quote(kept.instance, safe="") / str(kept.step)
        if place is not None:
            contents = {file.inside: file.data for file in files if file.data is not None}
            lay_out(place, contents, {"run": kept.run, "step": kept.step, "instance": kept.instance, **rest})
        found.append((kept, files, place))
    return found
