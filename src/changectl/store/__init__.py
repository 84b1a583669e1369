"""The record: journal, locks, evidence and saved bytes, in one SQLite file and two folders beside it.

Importing this package is cheap; SQLAlchemy and SQLModel are loaded by the first `open_store`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from changectl.store.store import Store

BUSY_SECONDS = 15.0  # how long an append waits for another writer before it is refused; a backup tool may take 10

__all__ = ["BUSY_SECONDS", "open_store"]


def open_store(path: Path, key_file: Path | None = None, *, busy_seconds: float = BUSY_SECONDS) -> Store:
    """Open the record at `path`, creating it (file 0600, new folders 0700) when it does not exist.

    Args:
        path: the SQLite file; `blobs/` and `snapshots/` lie beside it.
        key_file: the key for saved bytes; default `changectl.key` beside the database. Made at the first use.
        busy_seconds: how long a write waits while another process writes.

    Raises:
        Refused: the file is no changectl database, was written by a newer changectl, or its guards are gone.
        ChangectlError: it cannot be opened or created.
    """
    from changectl.store.store import Store

    return Store.open(path, key_file or path.parent / "changectl.key", busy_seconds=busy_seconds)
