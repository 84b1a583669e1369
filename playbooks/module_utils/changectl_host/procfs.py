"""Processes as /proc shows them: who they are, what they run, what belongs to them, where they listen."""

from __future__ import annotations

import os
import re
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Tuple

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Stat(NamedTuple):
    """The part of /proc/PID/stat that we use."""

    pid: int
    name: str
    state: str
    parent: int
    group: int
    session: int
    threads: int
    start_ticks: int  # clock ticks since boot


Identity = Tuple[int, int]  # process id and start ticks: stays unique when ids are used again


def parse_stat(text: str) -> Optional[Stat]:
    """Parse one /proc/PID/stat line; the name may hold blanks and brackets. None when it is none."""
    match = re.match(r"(\d+) \((.*)\) (\S) (.*)\Z", text.strip(), re.DOTALL)
    if match is None:
        return None
    rest = match.group(4).split()
    try:
        numbers = [int(rest[index]) for index in (0, 1, 2, 16, 18)]
    except (IndexError, ValueError):
        return None
    return Stat(int(match.group(1)), match.group(2), match.group(3), *numbers)


def stat(pid: int) -> Optional[Stat]:
    """The process, or None when it is gone or only a zombie waiting to be collected."""
    text = read(pid, "stat")
    found = parse_stat(text.decode(errors="replace")) if text else None
    return None if found is None or found.state in "ZX" else found


def read(pid: int, name: str) -> bytes:
    """A file of /proc/PID; empty when it cannot be read."""
    try:
        with open(f"/proc/{pid}/{name}", "rb") as source:
            return source.read()
    except OSError:
        return b""


def everyone() -> List[Stat]:
    """All living processes that we can see."""
    found = (stat(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [item for item in found if item is not None]


def alive(identity: Identity) -> bool:
    """Whether this very process (not a later one with its id) still lives."""
    found = stat(identity[0])
    return found is not None and found.start_ticks == identity[1]


def tree(pid: int) -> List[Identity]:
    """The process with all its descendants, and what runs in a session or group that it leads."""
    processes = everyone()
    members = {pid}
    grew = True
    while grew:
        before = len(members)
        members |= {item.pid for item in processes if item.parent in members}
        grew = len(members) > before
    if any(item.pid == pid for item in processes):
        members |= {item.pid for item in processes if pid in (item.session, item.group)}
    return sorted((item.pid, item.start_ticks) for item in processes if item.pid in members)


def split_nul(data: bytes) -> List[str]:
    """A NUL-separated list; undecodable bytes survive as surrogates."""
    return [os.fsdecode(part) for part in data.split(b"\0")[:-1]] if data else []


def argv(pid: int) -> List[str]:
    """The process's arguments."""
    data = read(pid, "cmdline")
    return split_nul(data if data.endswith(b"\0") or not data else data + b"\0")


def parse_environ(data: bytes) -> Dict[str, str]:
    """The environment block as a mapping; of a repeated name the first counts, as for getenv(3)."""
    found: Dict[str, str] = {}
    for item in data.split(b"\0"):
        name, mark, value = item.partition(b"=")
        if mark and name:
            found.setdefault(os.fsdecode(name), os.fsdecode(value))
    return found


def environ(pid: int) -> Optional[Dict[str, str]]:
    """A process's environment; None when it cannot be read, which is not the same as empty."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as source:
            return parse_environ(source.read())
    except OSError:
        return None


def program(pid: int) -> Optional[List[int]]:
    """Size, time of change and inode of the file that a process runs, even when another one lies at its path now."""
    try:
        status = os.stat(f"/proc/{pid}/exe")
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ino]


def parse_limits(text: str) -> Dict[str, List[str]]:
    """/proc/PID/limits as {name: [soft, hard]}; values stay text, since one of them is "unlimited"."""
    found = {}
    for line in text.splitlines()[1:]:
        match = re.match(r"(Max [a-z ]+?)\s{2,}(\S+)\s+(\S+)", line)
        if match:
            found[match.group(1)] = [match.group(2), match.group(3)]
    return found


def boot_time() -> float:
    """Seconds since the epoch at which the kernel started counting, by the clock as it goes now.

    The kernel's own `btime` is whole seconds and does not follow a clock that was set since, so that a process could
    seem older than a file which it has read.
    """
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)


def read_text(path: str) -> str:
    """A small system file as text; empty when it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def link(pid: int, name: str) -> Optional[str]:
    """Where a link of /proc/PID points, e.g. "cwd" or "exe"."""
    try:
        return os.readlink(f"/proc/{pid}/{name}")
    except OSError:
        return None


def parse_sockets(text: str) -> Dict[int, List[int]]:
    """Listening ports from /proc/net/tcp or tcp6: {port: [socket inodes]}."""
    found: Dict[int, List[int]] = {}
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != "0A" or not fields[9].isdigit():
            continue
        try:
            port = int(fields[1].rpartition(":")[2], 16)
        except ValueError:
            continue
        found.setdefault(port, []).append(int(fields[9]))
    return found


def listening() -> Dict[int, List[int]]:
    """Listening TCP ports of this network namespace with their socket inodes."""
    found: Dict[int, List[int]] = {}
    for name in ("tcp", "tcp6"):
        for port, inodes in parse_sockets(read_text(f"/proc/net/{name}")).items():
            found.setdefault(port, []).extend(inodes)
    return found


def socket_inodes(pid: int) -> List[int]:
    """Inodes of the sockets that a process holds; empty when we may not look."""
    found = []
    try:
        names = os.listdir(f"/proc/{pid}/fd")
    except OSError:
        return []
    for name in names:
        target = link(pid, f"fd/{name}") or ""
        if target.startswith("socket:["):
            found.append(int(target[8:-1]))
    return found


def ports_of(pids: Iterable[int]) -> List[int]:
    """Ports on which any of these processes listens."""
    held = {inode for pid in pids for inode in socket_inodes(pid)}
    return sorted(port for port, inodes in listening().items() if held & set(inodes))


def port_owner(port: int) -> Optional[int]:
    """The process that listens on a port: of several that share the socket, the oldest, which is the parent."""
    inodes = set(listening().get(port, []))
    if not inodes:
        return None
    owners = [item for item in everyone() if inodes & set(socket_inodes(item.pid))]
    return min(owners, key=lambda item: (item.start_ticks, item.pid)).pid if owners else None


def usage(pids: Iterable[int]) -> Dict[str, Any]:
    """Memory, threads, bytes read from storage and processor time of a tree; what cannot be read counts nothing."""
    total: Dict[str, Any] = {"rss_bytes": 0, "threads": 0, "read_bytes": 0, "cpu_seconds": 0.0}
    for pid in pids:
        fields = read(pid, "statm").split()
        total["rss_bytes"] += int(fields[1]) * PAGE if len(fields) > 1 else 0
        found = stat(pid)
        total["threads"] += found.threads if found else 0
        total["cpu_seconds"] += cpu_seconds(pid)
        match = re.search(rb"^read_bytes: (\d+)", read(pid, "io"), re.MULTILINE)
        total["read_bytes"] += int(match.group(1)) if match else 0
    return total


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, in seconds; 0.0 when it is gone."""
    fields = read(pid, "stat").rpartition(b") ")[2].split()
    return sum(int(ticks) for ticks in fields[11:13]) / TICKS


def brief(pid: int) -> Dict[str, Any]:
    """Enough to name a process to a person: id and program. Its arguments may hold secrets, and it may be anybody's."""
    own = name(pid)
    return {"pid": pid, "argv": [own] if own else []}


def name(pid: int) -> str:
    """What a process calls itself, without folder and arguments; empty when that cannot be told."""
    words = argv(pid)
    # A process may write its whole command line into the first argument.
    own = words[0].split() if words else []
    return os.path.basename(own[0] if own else link(pid, "exe") or "")
