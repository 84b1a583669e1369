"""Who holds a lock of ours, as the kernel tells it: for the words of a refusal, and to end a call that hangs.

Nothing here asks the file system of a foreign file: one that does not answer may be why somebody hangs.
"""

from __future__ import annotations

import os
from typing import List

from . import procfs


def holders(path: str) -> List[procfs.Stat]:
    """The processes that hold a lock file's lock, ourselves left out.

    Source: proc(5), /proc/PID/fdinfo: a descriptor that holds a lock has a line `lock:`. Whoever only waits has none.
    """
    place = os.path.realpath(path)
    return [item for item in procfs.everyone() if item.pid != os.getpid() and _holds(item.pid, place)]


def _holds(pid: int, place: str) -> bool:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return False  # it ended, or is another user's, who cannot open a lock in our private folder
    return any(procfs.link(pid, f"fd/{number}") == place and _locked(pid, number) for number in numbers)


def _locked(pid: int, number: str) -> bool:
    return "\nlock:" in procfs.read_text(f"/proc/{pid}/fdinfo/{number}")


def told(path: str) -> str:
    """The holders in words, for example "4711 (python3, stopped)"; empty when nobody can be told."""
    return ", ".join(f"{item.pid} ({item.name}{', stopped' if item.state == 'T' else ''})" for item in holders(path))
