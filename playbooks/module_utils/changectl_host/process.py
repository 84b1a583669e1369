"""One service process in full, as inspect and capture report it."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from . import facts, procfs


def describe(pid: Optional[int]) -> Optional[Dict[str, Any]]:
    """All that is known about a running process, its environment included; None when it does not run."""
    found = procfs.stat(pid) if pid else None
    if found is None:
        return None
    members = [identity[0] for identity in procfs.tree(found.pid)]
    who = identity(found.pid)
    return {
        "pid": found.pid,
        "start_ticks": found.start_ticks,
        "started_at": started_at(found),
        "argv": procfs.argv(found.pid),
        "environ": procfs.environ(found.pid),
        "cwd": procfs.link(found.pid, "cwd"),
        "exe": procfs.link(found.pid, "exe"),
        "program": procfs.program(found.pid),
        "venv": venv(found.pid),
        **who,
        "gids": sorted({*who["groups"], *([] if who["gid"] is None else [who["gid"]])}),
        "user": None if who["uid"] is None else facts.user_name(who["uid"]),
        **_place(found.pid),
        "limits": procfs.parse_limits(procfs.read(found.pid, "limits").decode(errors="replace")),
        "tree": members,
        "listens": procfs.ports_of(members),
        "rss_bytes": procfs.usage(members)["rss_bytes"],
    }


def venv(pid: int) -> Optional[str]:
    """The Python environment that the name of a process leads to; "": none; None: cannot be told.

    Python looks for it beside its own name, links not followed: several names of one file may lead to different ones.
    """
    words, environ, cwd = procfs.argv(pid), procfs.environ(pid), procfs.link(pid, "cwd")
    if not words or not words[0] or environ is None or cwd is None:
        return None
    root = f"/proc/{pid}/root"
    named = _named(words[0], environ, cwd, root)
    if named is None:
        return None
    folders = [os.path.dirname(named), os.path.dirname(os.path.dirname(named))]
    return next((os.path.normpath(folder) for folder in folders if os.path.isfile(f"{root}{folder}/pyvenv.cfg")), "")


def _named(word: str, environ: Dict[str, str], cwd: str, root: str) -> Optional[str]:
    """Where a program lies that was called by this word, as execvp(3) finds it; None: nowhere."""
    if "/" in word:
        return os.path.join(cwd, word)
    places = [os.path.join(cwd, folder, word) for folder in environ.get("PATH", os.defpath).split(os.pathsep)]
    return next((place for place in places if os.access(f"{root}{place}", os.X_OK)), None)


def identity(pid: int) -> Dict[str, Any]:
    """As whom a process acts: {uid, gid, groups, umask}, the effective ones; None: cannot be told."""
    found: Dict[str, Any] = {"uid": None, "gid": None, "groups": [], "umask": None}
    for line in procfs.read(pid, "status").decode(errors="replace").splitlines():
        key, _, value = line.partition(":")
        if key in ("Uid", "Gid"):
            found[key.lower()] = int(value.split()[1])
        elif key == "Groups":
            found["groups"] = sorted({int(part) for part in value.split()})
        elif key == "Umask":
            found["umask"] = int(value, 8)
    return found


def _place(pid: int) -> Dict[str, Any]:
    """Niceness, and the processors on which it may run; None: it ended meanwhile, or may not be asked."""
    try:
        return {"nice": os.getpriority(os.PRIO_PROCESS, pid), "affinity": sorted(os.sched_getaffinity(pid))}
    except OSError:
        return {"nice": None, "affinity": None}


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
