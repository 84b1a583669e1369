"""The host's specification and state, from /proc and /sys; what is not there is named, and nothing fails for it."""

from __future__ import annotations

import os
import platform
import re
import time
from typing import Any, Callable, Dict, List

from . import strain
from .procfs import parse_limits, read, read_text

_GPU_LIBRARIES = ("libnvidia-ml.so.1", "libcuda.so.1")
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/nvidia/lib64",
)


def host(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: kernel, os, cpus, memory, mounts, disks, network, load, gpu, limits, counters, missing.

    With `since` (seconds since the epoch) also `kernel_log`: what the kernel said of killed processes and broken GPUs.
    """
    missing: Dict[str, str] = {}
    paths = [path for path in args.get("paths") or [] if isinstance(path, str)]
    sources: Dict[str, Callable[[], Any]] = {
        "os": _os_release,
        "cpus": _cpus,
        "memory": _memory,
        "mounts": lambda: _need(read_text("/proc/self/mountinfo").splitlines()),
        "network": _network,
        "load": lambda: list(os.getloadavg()),
        "gpu": _gpu,
        "limits": lambda: parse_limits(read(os.getpid(), "limits").decode(errors="replace")),
        "uptime": lambda: float(read_text("/proc/uptime").split()[0]),
        **strain.sources(args),
    }
    found: Dict[str, Any] = {"kernel": platform.release(), "machine": platform.machine(), "time": time.time()}
    for name, source in sources.items():
        try:
            found[name] = source()
        except (OSError, ValueError, KeyError, IndexError) as error:
            missing[name] = f"{type(error).__name__}: {error}"
    found["disks"] = {}
    for path in paths:
        try:
            found["disks"][path] = _disk(path)
        except OSError as error:
            missing[f"disks {path}"] = error.strerror or str(error)
    return {**found, "missing": missing}


def _need(value: Any) -> Any:
    if not value:
        raise ValueError("empty or not readable")
    return value


def _os_release() -> Dict[str, str]:
    found = {}
    for line in _need(read_text("/etc/os-release")).splitlines():
        name, mark, value = line.partition("=")
        if mark:
            found[name.lower()] = value.strip().strip("\"'")
    return found


def _cpus() -> Dict[str, Any]:
    text = _need(read_text("/proc/cpuinfo"))
    model = re.search(r"^(?:model name|Model|Processor)\s*:\s*(.+)$", text, re.MULTILINE)
    return {
        "count": os.cpu_count(),
        "usable": len(os.sched_getaffinity(0)),
        "model": model.group(1).strip() if model else platform.processor() or None,
    }


def parse_meminfo(text: str) -> Dict[str, int]:
    """/proc/meminfo in bytes."""
    found = {}
    for line in text.splitlines():
        match = re.match(r"([^:]+):\s+(\d+)(?: kB)?\s*\Z", line)
        if match:
            found[match.group(1)] = int(match.group(2)) * (1024 if line.rstrip().endswith("kB") else 1)
    return found


def _memory() -> Dict[str, int]:
    info = parse_meminfo(_need(read_text("/proc/meminfo")))
    return {
        "total": info["MemTotal"],
        "available": info["MemAvailable"],
        "swap_total": info.get("SwapTotal", 0),
        "swap_free": info.get("SwapFree", 0),
    }


def _network() -> Dict[str, Dict[str, Any]]:
    base = "/sys/class/net"
    return {
        name: _card(os.path.join(base, name)) for name in sorted(os.listdir(base)) if os.path.isdir(f"{base}/{name}")
    }


def _card(folder: str) -> Dict[str, Any]:
    numbers = {}
    for kind in ("rx_errors", "tx_errors", "rx_dropped", "tx_dropped"):
        text = read_text(f"{folder}/statistics/{kind}").strip()
        numbers[kind] = int(text) if text.isdigit() else None
    speed = read_text(f"{folder}/speed").strip()
    mtu = read_text(f"{folder}/mtu").strip()
    return {
        "state": read_text(f"{folder}/operstate").strip() or None,
        "speed": int(speed) if speed.isdigit() else None,
        "mtu": int(mtu) if mtu.isdigit() else None,
        "errors": {"rx": numbers["rx_errors"], "tx": numbers["tx_errors"]},
        "drops": {"rx": numbers["rx_dropped"], "tx": numbers["tx_dropped"]},
    }


def _gpu() -> Dict[str, Any]:
    """Whether there is a GPU and its driver, by files alone; NVML answers the rest."""
    version = read_text("/proc/driver/nvidia/version")
    match = re.search(r"Kernel Module(?: for \S+)?\s+(\S+)", version)
    cards = sorted(os.listdir("/proc/driver/nvidia/gpus")) if os.path.isdir("/proc/driver/nvidia/gpus") else []
    libraries: List[str] = []
    for name in _GPU_LIBRARIES:
        for folder in _LIBRARY_FOLDERS:
            path = os.path.join(folder, name)
            if os.path.exists(path):
                libraries.append(os.path.realpath(path))
    return {
        "present": bool(cards) or os.path.exists("/dev/nvidia0"),
        "driver": match.group(1) if match else None,
        "library": libraries[0] if libraries else None,
        "library_version": _library_version(libraries),
        "cards": cards,
        "models": sorted(gpu_model(read_text(f"/proc/driver/nvidia/gpus/{card}/information")) for card in cards),
        "amd": os.path.exists("/dev/kfd"),
    }


def gpu_model(text: str) -> str:
    """What the driver calls a card, from its `information` file; empty where that does not tell."""
    match = re.search(r"^Model:\s*(.+?)\s*$", text, re.MULTILINE)
    return match.group(1) if match else ""


def _library_version(libraries: List[str]) -> Any:
    """The version that stands in the library's file name: it must be the kernel driver's, or nothing starts."""
    for path in libraries:
        match = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)\Z", path)
        if match:
            return match.group(1)
    return None


def _disk(path: str) -> Dict[str, Any]:
    """Room on the file system that holds a path, or would hold it."""
    place = path
    while not os.path.exists(place) and place != "/":
        place = os.path.dirname(place)
    found = os.statvfs(place)
    return {
        "free": found.f_bavail * found.f_frsize,
        "total": found.f_blocks * found.f_frsize,
        "free_inodes": found.f_favail,
        "read_only": bool(found.f_flag & os.ST_RDONLY),
    }
