"""Ask the engine itself what it knows: its own --help, run as the service's user."""

from __future__ import annotations

import contextlib
import os
import pwd
from typing import Any, Callable, Dict, Optional

from . import commands, scratch
from .failure import Failure

# Variables that tie a process to its manager or its home; our own start of the program has neither.
_OF_ONE_START = ("NOTIFY_", "LISTEN_", "WATCHDOG_", "JOURNAL_STREAM", "XDG_")


def program_help(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {text, exit_status}; text is stdout followed by stderr."""
    argv = args.get("argv")
    if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
        raise Failure("bad_arguments", "argv must be a list of words")
    environment = dict(args.get("environ") or os.environ)
    options: Dict[str, Any] = {}
    with contextlib.ExitStack() as stack:
        # A folder that is thrown away: some engines write caches even for --help.
        folder = stack.enter_context(scratch.folder("help"))
        environment = {name: value for name, value in environment.items() if not name.startswith(_OF_ONE_START)}
        environment.update(HOME=folder, TMPDIR=folder)
        change = _become(args.get("user"), folder)
        if change is not None:
            options["preexec_fn"] = change
        result = commands.run(
            argv, float(args.get("timeout") or 60), args.get("run"), environment, cwd=folder, **options
        )
    return {"text": (result.out + result.err)[: 2 * 1024 * 1024], "exit_status": result.status}


def _become(user: Optional[str], folder: str) -> Optional[Callable[[], None]]:
    if not user or os.geteuid() != 0:
        return None
    try:
        entry = pwd.getpwuid(int(user)) if user.isdigit() else pwd.getpwnam(user)
    except KeyError:
        raise Failure("bad_arguments", f"this host has no user {user!r}") from None
    os.chown(folder, entry.pw_uid, entry.pw_gid)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)

    def change() -> None:
        os.setgroups(groups)
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)

    return change
