"""Who holds a lock of ours, as the kernel tells it: for the words of a refusal, and to end a call that hangs."""

from __future__ import annotations

import os
import signal
from typing import List, Tuple

from . import procfs

File = Tuple[int, int]  # device and inode


def holders(path: str) -> List[procfs.Stat]:
    """The processes that hold a lock file's lock, ourselves left out.

    Source: proc(5), /proc/PID/fdinfo: a descriptor that holds a lock has a line `lock:`. Whoever only waits has none.
    """
    try:
        place = os.stat(path)
    except OSError:
        return []
    file = (place.st_dev, place.st_ino)
    return [item for item in procfs.everyone() if item.pid != os.getpid() and _holds(item.pid, file)]


def _holds(pid: int, file: File) -> bool:
    base = f"/proc/{pid}/fd"
    try:
        numbers = os.listdir(base)
    except OSError:
        return False  # it ended, or is another user's, who cannot open a lock in our private folder
    return any(_is(f"{base}/{number}", file) and _locked(pid, number) for number in numbers)


def _is(path: str, file: File) -> bool:
    try:
        status = os.stat(path)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == file


def _locked(pid: int, number: str) -> bool:
    return "\nlock:" in procfs.read_text(f"/proc/{pid}/fdinfo/{number}")


def told(path: str) -> str:
    """The holders in words, for example "4711 (python3, stopped)"; empty when nobody can be told."""
    return ", ".join(f"{item.pid} ({item.name}{', stopped' if stopped(item) else ''})" for item in holders(path))


def stopped(item: procfs.Stat) -> bool:
    """Whether somebody stopped a process, so that it does nothing until it is continued."""
    return item.state in "Tt"


def end(found: List[procfs.Stat]) -> None:
    """Kill processes; the kernel frees their locks."""
    for item in found:
        if procfs.alive((item.pid, item.start_ticks)):
            try:
                os.kill(item.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
