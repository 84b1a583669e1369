"""One service process in full, as inspect and capture report it."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from . import facts, procfs


def describe(pid: Optional[int]) -> Optional[Dict[str, Any]]:
    """All that is known about a running process, its environment included; None when it does not run."""
    found = procfs.stat(pid) if pid else None
    if found is None:
        return None
    members = [identity[0] for identity in procfs.tree(found.pid)]
    uid, gids = procfs.status_ids(found.pid)
    return {
        "pid": found.pid,
        "start_ticks": found.start_ticks,
        "started_at": started_at(found),
        "argv": procfs.argv(found.pid),
        "environ": procfs.environ(found.pid),
        "cwd": procfs.link(found.pid, "cwd"),
        "exe": procfs.link(found.pid, "exe"),
        "program": procfs.program(found.pid),
        "uid": uid,
        "gids": sorted(set(gids)),
        "user": None if uid is None else facts.user_name(uid),
        "limits": procfs.parse_limits(procfs.read(found.pid, "limits").decode(errors="replace")),
        "tree": members,
        "listens": procfs.ports_of(members),
        "rss_bytes": procfs.usage(members)["rss_bytes"],
    }


def progress(pid: Optional[int]) -> Optional[Dict[str, Any]]:
    """What a starting service does just now: identity, bytes read, memory, threads; None when it does not run."""
    found = procfs.stat(pid) if pid else None
    if found is None:
        return None
    members = members_of(found.pid)
    identity = {"pid": found.pid, "start_ticks": found.start_ticks, "started_at": started_at(found)}
    return {**identity, **procfs.usage(members)}


def members_of(pid: int) -> List[int]:
    """The process ids of a process tree."""
    return [identity[0] for identity in procfs.tree(pid)]


def started_at(found: procfs.Stat) -> float:
    """Seconds since the epoch at which the process started, as this boot's clock sees it."""
    return procfs.boot_time() + found.start_ticks / procfs.TICKS
