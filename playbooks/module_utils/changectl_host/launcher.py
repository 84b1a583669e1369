"""Runs as a process of its own: start a program exactly as described on stdin, owned by nobody, and answer its pid.

It stands alone (no imports from this package), since it is handed to `python3 -c`.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import sys
from typing import Any, Dict

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


def become(launch: Dict[str, Any]) -> None:
    """Give this process the limits, user, folder and output of the service."""
    os.setsid()
    for name, (soft, hard) in launch["limits"].items():
        which = getattr(resource, _LIMITS.get(name, ""), None)
        if which is None:
            continue
        # Not root: a hard limit that was lowered for us cannot be raised again.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(which, (number(soft), number(hard)))
    log = os.open(launch["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    null = os.open(os.devnull, os.O_RDONLY)
    if launch["user"]:
        name, uid, gid = launch["user"]
        os.initgroups(name, gid)
        os.setgid(gid)
        os.setuid(uid)
    os.chdir(launch["cwd"])
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)


def main() -> None:
    """Fork, become the service, and tell the parent its pid or why it could not be started."""
    launch = json.load(sys.stdin)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(reader)
            become(launch)
            environment = {os.fsencode(k): os.fsencode(v) for k, v in launch["environ"].items()}
            os.execvpe(launch["argv"][0], launch["argv"], environment)  # noqa: S606  that is the point
        except BaseException as error:  # noqa: BLE001  the parent tells it
            os.write(writer, str(error).encode("utf-8", "replace"))
        os._exit(127)
    os.close(writer)  # the other end closes by itself when the program takes over
    problem = os.read(reader, 4096).decode("utf-8", "replace")
    sys.stdout.write(json.dumps({"error": problem} if problem else {"pid": pid}))


if __name__ == "__main__":
    main()
