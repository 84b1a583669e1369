"""What to keep from a failed attempt: the service's log since the change, and the host's own counters."""

from __future__ import annotations

from typing import Any, Dict, List

from . import manager, status, systemd
from .failure import Failure
from .procfs import read_text

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
    log: List[str] = []
    name, settings = manager.read(args.get("manager"))
    if args.get("log_file"):
        log, _ = status.tail(args["log_file"], "0:0")
    elif name == "systemd":
        try:
            log, _ = systemd.journal(settings, None, float(args.get("since") or 0))
        except Failure as failure:
            missing["log"] = failure.message
    else:
        missing["log"] = "no log file is known for this service"
    return {"log": log, "host": host, "missing": missing}
