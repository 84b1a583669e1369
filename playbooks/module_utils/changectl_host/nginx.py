"""nginx on this host: which process it is, whether it would take its configuration, and whether it has taken it."""

from __future__ import annotations

import base64
import os
import re
import signal
import time
from typing import Any, Dict, List, Optional, Tuple

from . import commands, facts, procfs
from .failure import Failure

Record = Dict[str, Any]
_TAKES = 15.0  # seconds from the signal until all new workers run; the old ones go on until their requests have ended
_TEST = 30.0  # seconds; names of hosts are looked up
_MASTER, _WORKER, _ENDING = "nginx: master process ", "nginx: worker process", "is shutting down"
_KEEP = ("-c", "-p")  # options that say which configuration it reads
_FILE = re.compile(r"^# configuration file (.*):$", re.MULTILINE)
_CLOCK = 1.0  # seconds by which a file's time may lie after a start that read it


def balancer(args: Record) -> Record:
    """The call: what nginx is told and what it runs on: {file, master, workers, reads, problem, pending}.

    `reads`: whether the file is part of nginx's configuration. `problem`: why nginx would not take what stands there
    now; "" it would. `pending`: files that were changed since the workers were started, so that a reload would put
    somebody's edit into force.
    """
    path = str(args.get("file") or "")
    resolved = facts.resolve(path)
    with facts.opened(resolved) as file:
        content, digest = file.data, file.sha256
    found = master()
    told = commands.run([*_program(found), "-T"], timeout=_TEST)
    named = [os.path.realpath(one) for one in _FILE.findall(told.out)]
    return {
        "file": {"content": base64.b64encode(content).decode("ascii"), "sha256": digest, "resolved": resolved},
        "master": found,
        "workers": sorted(workers(found)),
        "reads": resolved in named,
        "problem": "" if told.status == 0 else _said(told),
        "pending": _edited_since(named, found),
    }


def master() -> int:
    """The process id of the one nginx on this host.

    Raises:
        Failure: `nginx_not_running`; `nginx_ambiguous`.
    """
    own = procfs.link(os.getpid(), "ns/mnt")
    found = [pid for pid in _titled(_MASTER) if procfs.link(pid, "ns/mnt") == own]
    if not found:
        raise Failure("nginx_not_running", "no nginx runs on this host, outside of containers")
    if len(found) > 1:
        pids = ", ".join(map(str, sorted(found)))
        raise Failure("nginx_ambiguous", f"several nginx run on this host (processes {pids}): unknown which is meant")
    return found[0]


def workers(of: int) -> List[int]:
    """The processes that take new requests; those that only end their last ones are left out."""
    return [pid for pid in _titled(_WORKER) if _parent(pid) == of and _ENDING not in _title(pid)]


def test(of: int) -> None:
    """Raises Failure `nginx_refuses` where nginx would not take the configuration as it stands."""
    done = commands.run([*_program(of), "-t", "-q"], timeout=_TEST)
    if done.status:
        raise Failure("nginx_refuses", f"nginx does not take its configuration: {_said(done)}")


def reload(of: int) -> Record:
    """Let nginx read its configuration anew, and see that every worker that takes requests does so: {workers, seconds}.

    Raises:
        Failure: `not_reloaded`: the old workers go on.
    """
    before, begun = set(workers(of)), time.monotonic()
    try:
        os.kill(of, signal.SIGHUP)
    except OSError as error:
        raise Failure("not_reloaded", f"nginx (process {of}) cannot be told to reload: {error.strerror}") from error
    while time.monotonic() - begun < _TAKES:
        now = set(workers(of))
        if now and not now & before:
            return {"workers": sorted(now), "seconds": round(time.monotonic() - begun, 3)}
        time.sleep(0.05)
    raise Failure("not_reloaded", f"nginx (process {of}) goes on with its old workers; see its error log")


def _program(of: int) -> List[str]:
    """The running nginx's own file, with the options that name its configuration."""
    title = _title(of)[len(_MASTER) :].split()
    kept = [word for option in _KEEP if option in title[:-1] for word in (option, title[title.index(option) + 1])]
    return [procfs.link(of, "exe") or "nginx", *kept]


def _titled(begin: str) -> List[int]:
    return [one.pid for one in procfs.everyone() if one.name == "nginx" and _title(one.pid).startswith(begin)]


def _title(pid: int) -> str:
    """What a process calls itself; nginx writes one sentence over its arguments."""
    return procfs.read(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def _parent(pid: int) -> Optional[int]:
    found = procfs.stat(pid)
    return found.parent if found is not None else None


def _edited_since(paths: List[str], of: int) -> List[str]:
    """Files that are newer than the oldest worker that takes requests."""
    starts = [_started(pid) for pid in workers(of)]
    known = [start for start in starts if start is not None]
    if not known:
        return []
    return [path for path in dict.fromkeys(paths) if _written(path) > min(known) + _CLOCK]


def _started(pid: int) -> Optional[float]:
    found = procfs.stat(pid)
    return None if found is None else procfs.boot_time() + found.start_ticks / os.sysconf("SC_CLK_TCK")


def _written(path: str) -> float:
    status = facts.stat_or_none(path)
    return 0.0 if status is None else status.st_mtime


def _said(done: Tuple[int, str, str]) -> str:
    return (done[2] or done[1]).strip()[-600:]
