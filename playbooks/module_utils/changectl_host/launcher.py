"""Runs as a process of its own: start a program exactly as described on stdin, owned by nobody, and answer its pid.

It stands alone (no imports from this package), since it is handed to `python3 -c`.
"""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import Any, Dict, List

_LIMITS = {
    "Max cpu time": "RLIMIT_CPU", "Max file size": "RLIMIT_FSIZE", "Max data size": "RLIMIT_DATA",
    "Max stack size": "RLIMIT_STACK", "Max core file size": "RLIMIT_CORE", "Max resident set": "RLIMIT_RSS",
    "Max processes": "RLIMIT_NPROC", "Max open files": "RLIMIT_NOFILE", "Max locked memory": "RLIMIT_MEMLOCK",
    "Max address space": "RLIMIT_AS", "Max nice priority": "RLIMIT_NICE", "Max realtime priority": "RLIMIT_RTPRIO",
    "Max pending signals": "RLIMIT_SIGPENDING", "Max msgqueue size": "RLIMIT_MSGQUEUE",
}  # fmt: skip


def number(text: str) -> int:
    """A limit as setrlimit takes it."""
    return resource.RLIM_INFINITY if text == "unlimited" else int(text)


def take_on(launch: Dict[str, Any]) -> List[str]:
    """Give this process the service's limits, niceness and processors; returns what this user may not give."""
    refused = []
    for name in ("nice", "affinity"):
        wanted = launch.get(name)
        if wanted is None:
            continue
        try:
            if name == "nice":
                os.setpriority(os.PRIO_PROCESS, 0, wanted)
            else:
                os.sched_setaffinity(0, wanted)
        except OSError:
            refused.append(name)
    for name, (soft, hard) in launch["limits"].items():
        which = getattr(resource, _LIMITS.get(name, ""), None)
        if which is None:
            continue
        try:
            resource.setrlimit(which, (number(soft), number(hard)))
        except (ValueError, OSError):
            refused.append(name)  # not root: a hard limit that was lowered for us cannot be raised again
    return refused


def become(launch: Dict[str, Any]) -> None:
    """Give this process the user, folder and output of the service."""
    os.setsid()
    log = os.open(launch["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    if launch.get("umask") is not None:
        os.umask(launch["umask"])
    who = launch["identity"]
    if who.get("uid") is not None:
        os.setgroups(who["groups"] or [])
        os.setresgid(who["gid"], who["gid"], who["gid"])
        os.setresuid(who["uid"], who["uid"], who["uid"])
    os.chdir(launch["cwd"])
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def tell(writer: int, **facts: Any) -> None:
    """One line of JSON to the parent."""
    os.write(writer, json.dumps(facts).encode("ascii") + b"\n")


def main() -> None:
    """Fork, become the service, and tell the parent its pid or why it could not be started."""
    launch = json.load(sys.stdin)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            refused = take_on(launch)
            become(launch)
            tell(writer, not_given=refused)
            environment = {os.fsencode(k): os.fsencode(v) for k, v in launch["environ"].items()}
            os.execvpe(launch["argv"][0], launch["argv"], environment)  # noqa: S606  that is the point
        except BaseException as error:  # noqa: BLE001  the parent tells it
            tell(writer, error=str(error) or type(error).__name__)
        os._exit(127)
    os.close(writer)  # the other end closes by itself when the program takes over
    with open(reader, encoding="ascii") as told:
        said = [json.loads(line) for line in told]
    sys.stdout.write(json.dumps({"pid": pid, **said[-1]} if said and "error" not in said[-1] else (said or [{}])[-1]))


if __name__ == "__main__":
    main()
