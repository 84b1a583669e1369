"""Signs of a host in trouble: kernel counters, the kernel's log, what a service's own cgroup counted."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Optional

from . import commands
from .failure import Failure
from .procfs import read, read_text

_COUNTERS = ("oom_kill", "pswpin", "pswpout")
_TROUBLE = re.compile(r"NVRM: Xid|oom-kill|Out of memory: Killed|Memory cgroup out of memory")
_LINES = 50


def counters() -> Dict[str, int]:
    """Kernel counters since boot: processes killed for lack of memory, pages swapped in and out.

    Raises:
        ValueError: the kernel does not tell.
    """
    pairs = (line.split() for line in read_text("/proc/vmstat").splitlines())
    found = {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[0] in _COUNTERS}
    if not found:
        raise ValueError("/proc/vmstat cannot be read")
    return found


def kernel_log(since: float) -> List[str]:
    """Lines of the kernel's log since a time (seconds since the epoch) that tell of killed processes or broken GPUs.

    Raises:
        ValueError: the kernel's log cannot be read here.
    """
    words = ["journalctl", "-k", f"--since=@{since:.6f}", "--output=cat", "--no-pager", "--quiet", "--lines=2000"]
    try:
        result = commands.run(words, timeout=20)
    except Failure as failure:
        raise ValueError(failure.message) from failure
    if result.status:
        raise ValueError(result.err.strip() or "journalctl failed")
    return [line for line in result.out.splitlines() if _TROUBLE.search(line)][-_LINES:]


def memory_events(pid: Optional[int], control_group: Optional[str]) -> Optional[Dict[str, int]]:
    """What the service's cgroup counted (oom_kill, oom, max, high); None: there is no such cgroup to read."""
    group = control_group or group_of(pid)
    if not group or group == "/":
        return None
    pairs = (line.split() for line in read_text(f"/sys/fs/cgroup{group}/memory.events").splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()} or None


def group_of(pid: Optional[int]) -> Optional[str]:
    """The unified cgroup of a process; None: there is none."""
    text = read(pid, "cgroup").decode(errors="replace") if pid else ""
    match = re.search(r"^0::(/.*)$", text, re.MULTILINE)
    return match.group(1) if match else None


def sources(args: Dict[str, Any]) -> Dict[str, Any]:
    """What of this the call `host` reads: name -> function."""
    found: Dict[str, Any] = {"counters": counters}
    if isinstance(args.get("since"), (int, float)):
        found["kernel_log"] = lambda: kernel_log(float(args["since"]))
    return found
