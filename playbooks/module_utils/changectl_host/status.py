"""What the service does right now: its state, its process, its log since last time."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from . import command, manager, process, procfs, strain, systemd
from .failure import Failure
from .state import Run

_TAIL = 64 * 1024  # bytes of a log shown without a cursor
_CHUNK = 1024 * 1024  # at most this much of a log in one answer: its newest part


def status(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call; see the keys below. `memory_events` is what the service's cgroup counted.

    With `from_start` also `start_log`: what the running service logged first, however long ago. A log file does not
    tell where a start begins: of it, what stands before `log`, as much as one answer holds.
    """
    name, settings = manager.read(args.get("manager"))
    log_file = args.get("log_file")
    if name == "systemd":
        found = _systemd(settings)
        show = found.pop("show")
        pid = systemd.main_pid(show)
        group = show.get("ControlGroup")
        if args.get("from_start") and not log_file:
            found["start_log"] = systemd.start_of_journal(settings, show)
    else:
        found, pid, own_log = _command(settings, args)
        log_file, group = log_file or own_log, None
    found["memory_events"] = strain.memory_events(pid, group)
    found["process"] = process.progress(pid)
    found["listens"] = procfs.ports_of(process.members_of(pid)) if pid else []
    found["log_file"] = log_file
    found["now"] = time.time()  # this host's clock, as process.started_at
    if log_file:
        found["log"], found["cursor"] = tail(log_file, args.get("cursor"))
        if args.get("from_start"):
            found["start_log"] = before_tail(log_file)
    elif name == "systemd":
        found["log"], found["cursor"] = systemd.journal(settings, args.get("cursor"))
    else:
        found["log"], found["cursor"] = [], None
    return found


def _systemd(settings: Dict[str, Any]) -> Dict[str, Any]:
    show = systemd.show(settings)
    status_text = show.get("ExecMainStatus", "")
    started = show.get("ExecMainExitTimestampMonotonic", "0") != "0"
    return {
        "show": show,
        "active": show.get("ActiveState", "unknown"),
        "sub": show.get("SubState"),
        "restarts": int(show.get("NRestarts") or 0),
        "result": show.get("Result"),
        "exec_status": int(status_text) if status_text.isdigit() and started else None,
    }


def _command(settings: Dict[str, Any], args: Dict[str, Any]) -> Tuple[Dict[str, Any], Optional[int], Optional[str]]:
    """State of a `command` service; with `run` also of one that this run started and that cannot be found yet."""
    pid = command.find(settings)
    launched = command.launched(Run.of(args)) if args.get("run") else None
    active = "inactive"
    if pid is not None:
        active = "active"
    elif launched is not None:
        starting = command.traces(Run.of(args))
        active = "activating" if starting else "failed"
        pid = starting[0][0] if starting else None
    found = {"active": active, "sub": None, "restarts": 0, "result": None, "exec_status": None}
    return found, pid, None if launched is None else launched["log_file"]


def end_of_log(manager_settings: Optional[Dict[str, Any]], log_file: Optional[str]) -> Optional[str]:
    """A cursor to where the log ends now, so that what an earlier start said is not taken for the next one's.

    Args:
        manager_settings: of a systemd unit; None: the service has no journal.
        log_file: the service's own log, if it has one.
    """
    if log_file:
        return tail(log_file, None)[1]
    try:
        return None if manager_settings is None else systemd.journal(manager_settings, None)[1]
    except Failure:
        return None  # the start matters more


def before_tail(path: str) -> List[str]:
    """The complete lines that stand before what `tail` tells without a cursor, as many as one answer holds."""
    try:
        with open(path, "rb") as source:
            end = os.fstat(source.fileno()).st_size - _TAIL
            if end <= 0:
                return []
            begin = max(0, end - _CHUNK)
            source.seek(begin)
            data = source.read(end - begin)
            rest = source.readline(_TAIL)  # the tail begins in the middle of this line
    except OSError:
        return []
    lines = (data + rest).decode(errors="replace").splitlines()
    return lines[1:] if begin else lines


def tail(path: str, cursor: Optional[str]) -> Tuple[List[str], Optional[str]]:
    """Complete lines of a log file after a cursor ("inode:offset"); a rotated or shortened file from its start."""
    try:
        with open(path, "rb") as source:
            facts = os.fstat(source.fileno())
            inode, _, offset = (cursor or "").partition(":")
            known = inode == str(facts.st_ino) and offset.isdigit() and int(offset) <= facts.st_size
            limit = _CHUNK if cursor else _TAIL
            begin = int(offset) if known else 0
            begin = max(begin, facts.st_size - limit)
            source.seek(begin)
            data = source.read(limit)
    except OSError:
        return [], cursor
    end = data.rfind(b"\n") + 1
    if not end and len(data) == limit:
        end = len(data)  # one endless line
    return data[:end].decode(errors="replace").splitlines(), f"{facts.st_ino}:{begin + end}"
