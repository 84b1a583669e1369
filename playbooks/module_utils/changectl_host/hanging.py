"""A call that keeps the host's lock although nobody holds the lease: its controller is gone, and it hangs.

Stopped (as by SIGSTOP), or at work far beyond the service's stop, it would keep the saved configuration away for ever.
It is ended then; whatever it had begun is what a kill leaves, which the way back understands.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Callable, Dict, List

from . import holders, procfs
from .failure import Failure
from .locks import lease_lock, lease_lock_path
from .state import Run, boot_seconds

_STOPPED = 5.0  # seconds of being stopped, at every look
_HANGS = 60.0  # seconds beyond the service's stop
_OWN_RIGHT = {"restore", "boot", "deadman"}  # actions of the program that hold the lock in their own right


class Hanging:
    """The holders of a run's host lock, and since when each was seen there.

    Attributes:
        hangs: seconds that a call may take beyond the service's stop.
    """

    hangs = _HANGS

    def __init__(self, run: Run) -> None:
        self._run = run
        self._seen: Dict[procfs.Identity, float] = {}
        self._stopped: Dict[procfs.Identity, float] = {}
        self._ended: List[procfs.Identity] = []

    def look(self, stop_grace: float, still: Callable[[], bool]) -> None:
        """End what hangs by now.

        Args:
            stop_grace: seconds that the service's stop may take, for which a call may rightly hold the lock.
            still: whether nobody holds the lease; asked once more under the lease lock, where a new owner takes it.
        """
        now = boot_seconds()
        found = {(item.pid, item.start_ticks): item for item in self._candidates()}
        self._seen = {one: self._seen.get(one, now) for one in found}
        self._stopped = {one: self._stopped.get(one, now) for one, item in found.items() if item.state == "T"}
        late = [one for one in found if now - self._seen[one] > stop_grace + self.hangs]
        late += [one for one, since in self._stopped.items() if now - since > _STOPPED]
        due = [one for one in dict.fromkeys(late) if one not in self._ended]
        if due:
            self._end_unless_taken(due, still)

    def _end_unless_taken(self, due: List[procfs.Identity], still: Callable[[], bool]) -> None:
        """Ended while no new owner can take the lease: under its lock, or while one of the hanging calls has that."""
        try:
            with lease_lock():
                if still():
                    self._end(due)
        except Failure as failure:
            if failure.reason != "host_busy":
                raise
            having = [(item.pid, item.start_ticks) for item in holders.holders(lease_lock_path())]
            if set(having) & set(due) and still():
                self._end(due)

    def _candidates(self) -> List[procfs.Stat]:
        found = [*holders.holders(os.path.join(self._run.root, "lock")), *holders.holders(lease_lock_path())]
        return [item for item in dict.fromkeys(found) if _is_a_call(item.pid)]

    def _end(self, due: List[procfs.Identity]) -> None:
        pids = [pid for pid, _ in due]
        self._note("hanging_call.intent", pids)
        for pid, ticks in due:
            if procfs.alive((pid, ticks)):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        # Once is enough: what waits for a disk ends as soon as that answers.
        self._ended += due
        self._note("hanging_call.outcome", pids)

    def _note(self, event: str, pids: List[int]) -> None:
        with contextlib.suppress(OSError):  # a full disk may not keep the way back from being free
            self._run.record(event, pids=pids)


def _is_a_call(pid: int) -> bool:
    """Whether a holder is a call of a controller: Python, and none of our program's that acts in its own right.

    Whoever else holds the lock, for instance a person by flock(1), is only named.
    """
    words = procfs.argv(pid)
    program = os.path.basename(procfs.link(pid, "exe") or "")
    ours = any(word.endswith("program.pyz") for word in words) and bool(_OWN_RIGHT & set(words))
    return program.startswith("python") and not ours
