"""Saved configuration laid out as files for a person: what only the owner may read, in a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from changectl.core.errors import InputError, Problem
from changectl.store import files

REST = "saved.json"  # beside the files: owners, modes, attributes, the process as it ran, the model's files


def new_folder(folder: Path) -> None:
    """Make the folder that everything is laid into, for the owner alone.

    Raises:
        InputError: there is something of that name, a link that leads nowhere included: an existing folder may be
            somebody else's, or open to others; or it cannot be made.
    """
    if os.path.lexists(folder):
        raise InputError(Problem(f"{folder} is there already", hint="name a folder that does not exist yet"))
    try:
        folder.mkdir(mode=files.PRIVATE_FOLDER)
    except OSError as error:
        raise InputError(Problem(f"{folder} cannot be made: {error.strerror}")) from error


def lay_out(folder: Path, contents: Mapping[str, bytes], rest: Mapping[str, Any]) -> None:
    """Write files by their paths inside the folder, 0600, and the rest as one JSON file.

    Raises:
        InputError: the disk refuses; what was written so far stays.
    """
    try:
        files.make_folder(folder)
        for inside, data in contents.items():
            place = folder / "files" / inside
            files.make_folder(place.parent)
            files.write_atomically(place, data, replace=False)
        files.write_atomically(folder / REST, json.dumps(rest, indent=2, sort_keys=True).encode() + b"\n")
    except OSError as error:
        raise InputError(Problem(f"{folder} cannot be written: {error.strerror}")) from error
