"""Where the lab keeps what is slow to make, and how it makes each of those exactly once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

#: Made once per machine and kept between test runs; outside the repository, so that a clean checkout does not cost it.
CACHE = Path(os.environ.get("CHANGECTL_LAB_CACHE", "/var/cache/changectl-lab"))
#: A machine may carry several labs at once, each with a number of its own: 2 to 9, nothing for the usual one.
NUMBER = os.environ.get("CHANGECTL_LAB", "")
if NUMBER and NUMBER not in "23456789":
    raise ValueError(f"CHANGECTL_LAB is {NUMBER!r}: one digit from 2 to 9, or nothing")


def digest_of(*parts: str) -> str:
    """Return twelve hex digits that change when any of the parts does."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold a machine-wide lock, so that two test runs never build the same thing at once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def made_once(target: Path, make: Callable[[Path], None]) -> Path:
    """Return `target`, made by `make` if it is not there yet.

    `make` works in a scratch folder that is renamed into place at the end, so that a killed build is never used.
    """
    with locked(target.name):
        if target.exists():
            return target
        scratch = target.with_name(target.name + ".part")
        shutil.rmtree(scratch, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        make(scratch)
        scratch.rename(target)
    return target


def made_in_place(target: Path, make: Callable[[Path], None]) -> Path:
    """Like `made_once` for what cannot be moved (a virtual environment names its own path): a mark says it is whole."""
    mark = target / ".whole"
    with locked(target.name):
        if not mark.exists():
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            make(target)
            mark.touch()
    return target
