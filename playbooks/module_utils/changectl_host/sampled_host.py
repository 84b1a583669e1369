"""One look at how busy the host is: counters since boot and what is so now, each from one file of /proc or /sys.

Counters stay as the kernel has them: whoever compares two looks subtracts, and a look that got lost loses nothing.
"""

from __future__ import annotations

import os
import re
from typing import Any, Callable, Dict, List

from .procfs import read_text

_VMSTAT = ("pswpin", "pswpout", "oom_kill", "pgmajfault")
_MEMINFO = ("MemAvailable", "SwapTotal", "SwapFree")
# Devices that only pass on what another one does would count it twice.
_ON_OTHERS = re.compile(r"(?:loop|ram|zram|dm-|md|sr|fd)\d")
_SECTOR = 512  # bytes, in /proc/diskstats whatever the device has

Look = Dict[str, Any]


def look(missing: Dict[str, str]) -> Look:
    """Everything that can be read; what cannot be is named in `missing`, and nothing fails for it."""
    found: Look = {}
    for name, source in _SOURCES.items():
        if name in missing:
            continue
        try:
            found[name] = source()
        except (OSError, ValueError, KeyError, IndexError) as error:
            missing[name] = f"{type(error).__name__}: {error}"
    return found


def _need(path: str) -> str:
    text = read_text(path)
    if not text:
        raise ValueError(f"{path} is not there or cannot be read")
    return text


def _cores() -> List[List[int]]:
    """Of each core in clock ticks since boot: [busy, waiting for disks, taken by the hypervisor, all]."""
    found = []
    for line in _need("/proc/stat").splitlines():
        if not line.startswith("cpu") or line[3:4] == " ":
            continue
        user, nice, system, idle, iowait, irq, softirq, steal = (int(part) for part in line.split()[1:9])
        busy = user + nice + system + irq + softirq
        found.append([busy, iowait, steal, busy + idle + iowait + steal])
    if not found:
        raise ValueError("/proc/stat tells of no core")
    return found


def _queue() -> Dict[str, int]:
    """Threads that run or want to (this one left out), and those that wait for a disk."""
    pairs = dict(line.split()[:2] for line in _need("/proc/stat").splitlines() if line.startswith("procs_"))
    return {"running": max(0, int(pairs["procs_running"]) - 1), "blocked": int(pairs["procs_blocked"])}


def _memory() -> Dict[str, int]:
    found = {}
    for line in _need("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if name in _MEMINFO:
            found[name] = int(rest.split()[0]) * 1024
    return {"available": found["MemAvailable"], "swap_used": found.get("SwapTotal", 0) - found.get("SwapFree", 0)}


def _vmstat() -> Dict[str, int]:
    pairs = (line.split() for line in _need("/proc/vmstat").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if pair[0] in _VMSTAT}


def _pressure() -> Dict[str, int]:
    """Microseconds since boot in which some thread waited for the resource."""
    found = {}
    for name in ("cpu", "memory", "io"):
        match = re.search(r"^some .*total=(\d+)", _need(f"/proc/pressure/{name}"), re.MULTILINE)
        if match is None:
            raise ValueError(f"/proc/pressure/{name} has no total")
        found[name] = int(match.group(1))
    return found


def _disks() -> Dict[str, int]:
    """Reads and writes of all real disks: number, bytes, and milliseconds that they took together."""
    keys = ("reads", "read_bytes", "read_ms", "writes", "write_bytes", "write_ms")
    found = dict.fromkeys(keys, 0)
    whole = {name for name in os.listdir("/sys/block") if not _ON_OTHERS.match(name)}
    for line in _need("/proc/diskstats").splitlines():
        fields = line.split()
        if fields[2] in whole:
            reads, _, sectors_in, read_ms, writes, _, sectors_out, write_ms = (int(part) for part in fields[3:11])
            values = (reads, sectors_in * _SECTOR, read_ms, writes, sectors_out * _SECTOR, write_ms)
            for place, key in enumerate(keys):
                found[key] += values[place]
    return found


def _network() -> Dict[str, int]:
    """All cards but loopback: bytes, and packets that were damaged or thrown away."""
    found = {"bytes_in": 0, "bytes_out": 0, "packets": 0, "errors": 0, "dropped": 0}
    for line in _need("/proc/net/dev").splitlines()[2:]:
        name, _, rest = line.partition(":")
        numbers = [int(part) for part in rest.split()]
        if name.strip() != "lo":
            found["bytes_in"] += numbers[0]
            found["bytes_out"] += numbers[8]
            found["packets"] += numbers[1] + numbers[9]
            found["errors"] += numbers[2] + numbers[10]
            found["dropped"] += numbers[3] + numbers[11]
    return found


def _tcp() -> Dict[str, int]:
    """Segments sent and sent again, and connections that found the listener's queue full; of this network namespace."""
    tcp = _table(_need("/proc/net/snmp"), "Tcp")
    extended = _table(read_text("/proc/net/netstat"), "TcpExt")
    return {
        "sent": tcp["OutSegs"],
        "retransmitted": tcp["RetransSegs"],
        **({"overflows": extended["ListenOverflows"]} if "ListenOverflows" in extended else {}),
    }


def _table(text: str, kind: str) -> Dict[str, int]:
    """One pair of lines of /proc/net/snmp: names, then values."""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(f"{kind}:")]
    if len(lines) != 2 or len(lines[0]) != len(lines[1]):
        return {}
    return {name: int(lines[1][place]) for place, name in enumerate(lines[0])}


_SOURCES: Dict[str, Callable[[], Any]] = {
    "cores": _cores,
    "queue": _queue,
    "memory": _memory,
    "vmstat": _vmstat,
    "pressure": _pressure,
    "disks": _disks,
    "network": _network,
    "tcp": _tcp,
}
