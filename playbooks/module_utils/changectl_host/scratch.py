"""A folder for a moment, in memory: what only looks leaves no trace in /tmp, not even its time."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import Iterator

from .failure import Failure


@contextlib.contextmanager
def folder(purpose: str) -> Iterator[str]:
    """A private folder that is removed at the end.

    Raises:
        Failure: `no_scratch` when this host has no place in memory where this user may write.
    """
    for base in ("/dev/shm", os.environ.get("XDG_RUNTIME_DIR"), "/run"):  # noqa: S108  mkdtemp makes a private one
        if base and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK):
            break
    else:
        raise Failure("no_scratch", "this host has no place in memory (/dev/shm, /run) for scratch files")
    made = tempfile.mkdtemp(prefix=f"changectl-{purpose}-", dir=base)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
