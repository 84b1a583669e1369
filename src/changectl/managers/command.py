"""A service started by a command of the operator's own: a start script, found again by a pid file or its port."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from changectl.core.errors import EditRefused
from changectl.core.manager import Room, ServiceState, Show, SourceFile
from changectl.core.observed import Observed, Status
from changectl.core.settings import Carrier
from changectl.managers import _shared

_KEYS = {"start", "stop", "cwd", "pid"}
_SHELL_ONLY = re.compile(r"\||&|;|<|>|`|\$|\(|\)|\*|\?|~/")


class Command:
    """No daemon watches the process: it starts when told to and does not come back by itself."""

    name = "command"
    reboot_safe = False

    def target(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """`{command: {start, stop?, cwd?, pid: {file: PATH} or {port: N}}}`; commands become lists of words.

        Raises:
            InputError: a part is missing, or a command needs a shell (none is used).
        """
        parts = _shared.section(spec, "command", _KEYS)
        cwd = parts.get("cwd")
        if cwd is not None and not str(cwd).startswith("/"):
            raise _shared.problem("the folder is not absolute", "command/cwd", "for example: cwd: /srv/chat")
        if parts.get("start") is None:
            raise _shared.problem("no start command", "command", 'for example: start: "./run-chat start"')
        stop = parts.get("stop")
        return {
            "command": {
                "start": _words(parts["start"], "command/start"),
                "stop": None if stop is None else _words(stop, "command/stop"),
                "cwd": None if cwd is None else str(cwd),
                "pid": _pid(parts.get("pid")),
            }
        }

    def carrier_files(self, observed: Observed, carrier: Carrier) -> list[tuple[str, bytes]]:
        """The carrier's one file.

        Raises:
            EditRefused: the carrier names a systemd unit, or the file was not read.
        """
        if carrier.unit is not None:
            raise EditRefused(f"{carrier.unit} is a systemd unit, the manager is a command", reason="other_manager")
        return _shared.carrier_file(observed, carrier)

    def environment_sources(self, observed: Observed) -> list[SourceFile]:  # noqa: ARG002 - part of the protocol
        """None of its own: the environment is what the process was captured with, changed by declared files."""
        return []

    def start_limit_room(self, show: Show | None, starts_needed: int) -> Room:  # noqa: ARG002 - part of the protocol
        """Nothing counts the starts."""
        return Room(True, f"{starts_needed} starts needed, no start limit")

    def stop_grace(self, show: Show | None) -> float | None:  # noqa: ARG002 - part of the protocol
        """Infinite: nobody kills the process, the run itself waits for it and says how long."""
        return math.inf

    def state(self, status: Status, earlier: Status | None = None) -> ServiceState:
        """Up while the same process lives; one that ended by itself, or another one in its place, is a crash loop."""
        now, before = status.process, earlier.process if earlier else None
        if now is None:
            if status.active == "failed" or before is not None:
                return "crash_loop"
            return "starting" if status.active == "activating" else "down"
        same = before is None or (now.pid, now.start_ticks) == (before.pid, before.start_ticks)
        return "up" if same else "crash_loop"

    def managed_by(self, files: Mapping[str, bytes]) -> str | None:
        """From the header comments of the files."""
        return _shared.managed_by(files)

    def needs_daemon_reload_after(self, path: str) -> bool:  # noqa: ARG002 - part of the protocol
        """There is no daemon."""
        return False

    def owns_port(self, observed: Observed, endpoint: str) -> bool | None:
        """Whether the port is held inside the process tree that the pid file names.

        A service found by its port alone owns the endpoint's port exactly when it was found there.
        """
        return _shared.owns_port(observed, endpoint)

    def missing_safeguards(self, show: Show | None) -> Sequence[str] | None:  # noqa: ARG002 - part of the protocol
        """What a bare command never has."""
        return ["nothing restarts the process when it dies or the host reboots", "see that its log is rotated"]


def _words(command: Any, path: str) -> list[str]:
    if isinstance(command, (list, tuple)):
        words = [str(word) for word in command]
    elif _SHELL_ONLY.search(str(command)):
        raise _shared.problem("the command needs a shell, and none is used", path, "put it into a script and name that")
    else:
        try:
            words = shlex.split(str(command))
        except ValueError as error:
            raise _shared.problem(f"quotes are not closed: {error}", path) from None
    if not words or not words[0] or any("\0" in word for word in words):
        raise _shared.problem("the command is empty", path, 'for example: start: "./run-chat start"')
    return words


def _pid(spec: Any) -> dict[str, Any]:
    hint = "write pid: {file: /run/chat.pid} or pid: {port: 8080}"
    if not isinstance(spec, Mapping) or len(spec) != 1 or next(iter(spec)) not in {"file", "port"}:
        raise _shared.problem("how is the process found?", "command/pid", hint)
    if "file" in spec:
        if not str(spec["file"]).startswith("/"):
            raise _shared.problem("the path is not absolute", "command/pid/file", hint)
        return {"file": str(spec["file"])}
    port = str(spec["port"])
    if not port.isdigit() or not 1 <= int(port) <= 65535:
        raise _shared.problem(f"{spec['port']!r} is not a port", "command/pid/port", hint)
    return {"port": int(port)}


MANAGER = Command()
