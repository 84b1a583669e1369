"""Who holds a lock, and whether that process is still alive; told from /proc."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Holder:
    """One process, named so that no later process, container or machine can be taken for it."""

    host: str
    machine: str
    boot: str
    pid_space: str
    pid: int
    start_ticks: int

    @classmethod
    def current(cls) -> Holder:
        """This process."""
        pid = os.getpid()
        return cls(
            host=socket.gethostname(),
            machine=_read("/etc/machine-id"),
            boot=_read("/proc/sys/kernel/random/boot_id"),
            pid_space=_link("/proc/self/ns/pid"),
            pid=pid,
            start_ticks=_start_ticks(pid) or 0,
        )


def is_dead(holder: Holder, here: Holder) -> bool:
    """Whether the holder has certainly ended, seen from the process `here`.

    Of a process on another machine, or in another container of this one, nothing is certain: it counts as alive.
    """
    if (holder.host, holder.machine) != (here.host, here.machine):
        return False
    if holder.boot != here.boot:
        return True  # the machine was started anew since: no process of that time lives
    if holder.pid_space != here.pid_space:
        return False
    return _start_ticks(holder.pid) != holder.start_ticks


def is_alive(holder: Holder, here: Holder) -> bool:
    """Whether the holder certainly runs, seen from the process `here`: it, or its container's process, is in /proc.

    False says nothing: a process on another machine, or one that this one may not see, is simply not known.
    """
    if holder.boot != here.boot or not holder.boot:
        return False
    if holder.pid_space == here.pid_space:
        return _start_ticks(holder.pid) == holder.start_ticks
    return any(_is_contained(process, holder) for process in Path("/proc").glob("[1-9]*"))


def _is_contained(process: Path, holder: Holder) -> bool:
    """Whether this process is the holder, which knows itself by another number inside its container."""
    try:
        if str((process / "ns/pid").readlink()) != holder.pid_space:
            return False
        status = (process / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
    return numbers[-1:] == [str(holder.pid)] and _start_ticks(int(process.name)) is not None


def _start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when it is gone or only its exit status is left."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before ")" may hold spaces and brackets
    return None if fields[0] in "ZX" else int(fields[19])


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""  # a system without it: then only equal absences agree


def _link(path: str) -> str:
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""
