"""One look at what the service uses: its threads, its memory, what its cgroup counted."""

from __future__ import annotations

import os
import re
from typing import Any, Dict, List, Optional

from . import manager, procfs, strain
from .failure import Failure

Look = Dict[str, Any]
_SEARCH = 10  # looks between two searches for the members of the service's process tree: that reads all processes
_THREADS = 128  # read in one look at most; a service with more is read in every second look, every third, ...
_OF_CGROUP = ("memory_events", "throttled_us")
_NANOSECONDS = 1_000_000_000


class Service:
    """The service's processes, found again when they change."""

    def __init__(self, spec: Any) -> None:
        """Raises Failure `bad_arguments`: the manager's description is not understood."""
        manager.read(spec)
        self._spec = spec
        self._main: Optional[procfs.Identity] = None
        self._members: List[int] = []
        self._group: Optional[str] = None
        self._looks = 0
        self._rest = 0  # looks until the threads are read again
        self.names: Dict[str, str] = {}  # thread -> what it calls itself

    def look(self, missing: Dict[str, str]) -> Look:
        """`process` ([pid, start ticks], None: it does not run), `rss`, `threads`, `memory_events`, `throttled_us`."""
        try:
            self._find()
        except Failure as failure:
            missing["process"] = failure.message
            return {}
        self._looks += 1
        if self._main is None:
            return {"process": None}
        found: Look = {"process": list(self._main), "rss": self._rss(), **self._counted()}
        for name in _OF_CGROUP:
            if name not in found:
                missing.setdefault(name, "the service has no cgroup that tells it")
        self._rest -= 1
        if self._rest <= 0:
            found["threads"] = self._threads()
            self._rest = -(-len(found["threads"]) // _THREADS)
        return found

    def _find(self) -> None:
        main, lives = self._main, self._main is not None and procfs.alive(self._main)
        if not lives:
            pid = manager.main_pid(self._spec)
            found = procfs.stat(pid) if pid else None
            self._main = None if found is None else (found.pid, found.start_ticks)
        if self._main is None:
            self._members = []
        elif self._main != main or self._looks % _SEARCH == 0:
            self._members = [identity[0] for identity in procfs.tree(self._main[0])]
            self._group = strain.group_of(self._main[0])

    def _rss(self) -> int:
        pages = (procfs.read(pid, "statm").split() for pid in self._members)
        return sum(int(fields[1]) for fields in pages if len(fields) > 1) * procfs.PAGE

    def _counted(self) -> Look:
        """What the service's own cgroup counted, where it has one that can be read."""
        if not self._group or self._group == "/":
            return {}
        found: Look = {}
        events = strain.memory_events(None, self._group)
        if events:
            found["memory_events"] = events
        throttled = re.search(r"^throttled_usec (\d+)", procfs.read_text(f"/sys/fs/cgroup{self._group}/cpu.stat"), re.M)
        if throttled:
            found["throttled_us"] = int(throttled.group(1))
        return found

    def _threads(self) -> Dict[str, List[int]]:
        """Of each thread, by its id: [nanoseconds on a core, nanoseconds of waiting for one or -1: not told]."""
        found = {}
        for pid in self._members:
            try:
                names = os.listdir(f"/proc/{pid}/task")
            except OSError:
                continue
            for name in names:
                used = _used(f"/proc/{pid}/task/{name}")
                if used is not None:
                    found[name] = used
                    if name not in self.names:
                        self.names[name] = procfs.read_text(f"/proc/{pid}/task/{name}/comm").strip()
        return found


def _used(folder: str) -> Optional[List[int]]:
    fields = procfs.read_text(f"{folder}/schedstat").split()
    if len(fields) == 3:
        return [int(fields[0]), int(fields[1])]
    fields = procfs.read_text(f"{folder}/stat").rpartition(") ")[2].split()
    if len(fields) < 13:
        return None
    return [(int(fields[11]) + int(fields[12])) * _NANOSECONDS // procfs.TICKS, -1]
