"""What is left of a run whose controller died: Ansible's workers and their ssh, known by a mark in their environment.

Whatever they had begun on a host may go on to its end there; the host's lease keeps it from doing harm.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

MARK = "CHANGECTL_RUN"  # what a job's environment says; inherited by all that it starts


def end_orphans(run: str, place: Path = Path("/proc")) -> int:
    """End the processes of a run on this machine; returns how many there were.

    Args:
        run: the run's id; jobs carry it with the step behind a dot.
        place: where the kernel tells of processes.
    """
    found = 0
    for process in place.glob("[1-9]*"):
        if int(process.name) == os.getpid() or not _belongs(process, run):
            continue
        with contextlib.suppress(OSError):
            os.kill(int(process.name), signal.SIGKILL)
            found += 1
    return found


def _belongs(process: Path, run: str) -> bool:
    try:
        environment = (process / "environ").read_bytes()
    except OSError:
        return False  # gone, or somebody else's
    mark = f"{MARK}={run}".encode()
    return any(entry == mark or entry.startswith(mark + b".") for entry in environment.split(b"\0"))
