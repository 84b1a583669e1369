"""What to keep from a failed attempt: the service's log since the change, and the host's own counters."""

from __future__ import annotations

import os
from typing import Any, Dict, List

from . import command, manager, status, systemd
from .failure import Failure
from .procfs import read_text
from .state import Run

_SOURCES = {
    "vmstat": "/proc/vmstat",
    "meminfo": "/proc/meminfo",
    "loadavg": "/proc/loadavg",
    "stat": "/proc/stat",
    "pressure_cpu": "/proc/pressure/cpu",
    "pressure_memory": "/proc/pressure/memory",
    "pressure_io": "/proc/pressure/io",
    "snmp": "/proc/net/snmp",
    "netdev": "/proc/net/dev",
    "diskstats": "/proc/diskstats",
}


def evidence(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {log, host, missing}; a source that is not there is named, and nothing fails for it."""
    missing: Dict[str, str] = {}
    host = {}
    for name, path in _SOURCES.items():
        text = read_text(path)
        if text:
            host[name] = text
        else:
            missing[name] = f"{path} cannot be read or is empty"
    return {"log": _log(args, missing), "host": host, "missing": missing}


def _log(args: Dict[str, Any], missing: Dict[str, str]) -> List[str]:
    """What the service logged since the cursor that was taken before the change.

    Without a cursor: since a time (systemd), else the whole newest part of the file. A `command` service without a log
    of its own writes to the one of its last start by the run.
    """
    name, settings = manager.read(args.get("manager"))
    path, cursor = args.get("log_file"), args.get("cursor")
    if not path and name == "systemd":
        try:
            return systemd.journal(settings, cursor, None if cursor else float(args.get("since") or 0))[0]
        except Failure as failure:
            missing["log"] = failure.message
            return []
    if not path:
        launched = command.launched(Run.of(args)) if args.get("run") else None
        path = launched["log_file"] if launched else None
    if not path:
        missing["log"] = "no log file is known for this service"
        return []
    if not os.access(path, os.R_OK):
        missing["log"] = f"{path} cannot be read"
        return []
    return status.tail(path, cursor or "0:0")[0]
