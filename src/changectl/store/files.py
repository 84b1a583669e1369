"""Files and folders that only the owner may read, written so that a crash leaves the old or the new, never half."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

PRIVATE_FILE = 0o600
PRIVATE_FOLDER = 0o700


def make_folder(folder: Path) -> None:
    """Create the folder and whatever is missing above it, each 0700; what exists keeps its mode."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            place.mkdir(mode=PRIVATE_FOLDER)


def create_private(path: Path) -> bool:
    """Make an empty 0600 file unless there is one; returns whether it was made here."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_FILE))
    except FileExistsError:
        return False
    sync_folder(path.parent)
    return True


def write_atomically(path: Path, data: bytes, *, replace: bool = True) -> None:
    """Put the bytes at `path` (0600), on disk before they are visible under that name.

    Args:
        path: where; its folder exists.
        data: the whole content.
        replace: False raises FileExistsError when the name is taken, also by a process that came first a moment ago.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, PRIVATE_FILE)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            os.link(temporary, path)
        sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Have a file's content on disk that somebody else has written."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Make a new name in the folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
