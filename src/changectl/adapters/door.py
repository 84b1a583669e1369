"""A conversation with the host program: JSON lines over any pipe, whether ssh or a local process carries it."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from changectl.core.errors import ContactLost, HostCallError, Refused
from changectl.core.ports import HostAddress, Json, Progress

START_TIMEOUT = 30.0  # seconds for the host program to answer its first call

# Tried in this order where the inventory names no interpreter; the bootstrap itself refuses what is too old.
PYTHONS = ("python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8",
           "/usr/libexec/platform-python")  # fmt: skip


class Pipe(Protocol):
    """Bytes to and from a remote process."""

    def send(self, data: bytes) -> None:
        """Write all of it. Raises ContactLost."""

    def read_line(self, deadline: float) -> bytes:
        """One line with its newline, before time.monotonic() reaches `deadline`. Raises ContactLost."""

    def close(self) -> None:
        """End the process."""


@dataclass
class PipeDoor:
    """Fulfils core.ports.Door over a pipe."""

    host: str
    pipe: Pipe
    _last: int = field(default=0)

    def call(self, name: str, args: Json, *, timeout: float, progress: Progress | None = None) -> dict[str, Any]:
        """Ask the host program and wait for its answer; progress lines are passed on as they come."""
        self._last += 1
        request = {"id": self._last, "call": name, "args": dict(args)}
        self.pipe.send(json.dumps(request).encode() + b"\n")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._answer(self.pipe.read_line(deadline))
            if answer.get("id") == 0:
                return self._outcome(answer)  # the bootstrap could not start the program
            if answer.get("id") != self._last:
                continue  # the late answer of a call that was given up
            if "progress" in answer:
                if progress is not None:
                    progress(answer["progress"])
                continue
            return self._outcome(answer)

    def close(self) -> None:
        """End the conversation; the host program ends when its input closes."""
        self.pipe.close()

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except ValueError as error:
            raise ContactLost(f"{self.host}: unreadable answer of the host program: {line[:200]!r}") from error
        if not isinstance(answer, dict):
            raise ContactLost(f"{self.host}: unreadable answer of the host program: {line[:200]!r}")
        return answer

    def _outcome(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            error = answer["error"]
            raise HostCallError(f"{self.host}: {error['message']}", reason=str(error["reason"]))
        outcome: dict[str, Any] = answer["ok"]
        return outcome


def greet(door: PipeDoor, program: bytes) -> None:
    """Send the host program through a fresh pipe and wait until it serves.

    Raises:
        Refused: the host cannot run it (Python too old or missing); one sentence says why.
        ContactLost: no answer.
    """
    door.pipe.send(f"{len(program)}\n".encode() + program)
    try:
        door.call("hello", {}, timeout=START_TIMEOUT)
    except HostCallError as error:
        raise Refused(str(error), reason=error.reason) from error


def remote_command(host: HostAddress, bootstrap: str, become_password: str | None) -> str:
    """The one shell line that starts the bootstrap as root where the inventory says `ansible_become`."""
    interpreter = str(host.variables.get("ansible_python_interpreter", "auto"))
    if interpreter.startswith("auto"):
        tries = " ".join(shlex.quote(name) for name in PYTHONS)
        script = (
            f'for p in {tries}; do if command -v "$p" >/dev/null 2>&1; then exec "$p" -c "$0"; fi; done; '
            "echo 'no Python 3 was found on this host' >&2; exit 127"
        )
        command = f"/bin/sh -c {shlex.quote(script)} {shlex.quote(bootstrap)}"
    else:
        command = f"{shlex.quote(interpreter)} -c {shlex.quote(bootstrap)}"
    if not wants_become(host):
        return command
    user = str(host.variables.get("ansible_become_user", "root"))
    ask = "-n" if become_password is None else "-k -S -p ''"
    return f"sudo -H {ask} -u {shlex.quote(user)} {command}"


def wants_become(host: HostAddress) -> bool:
    """Whether the inventory asks for privilege escalation."""
    return str(host.variables.get("ansible_become", "false")).lower() in ("true", "yes", "1", "on")


def sudo_password(host: HostAddress, given: str | None) -> str | None:
    """The password that sudo is to read, if any: `-K` first, then the inventory's."""
    if not wants_become(host):
        return None
    known = host.variables.get("ansible_become_password", host.variables.get("ansible_become_pass"))
    return given if given is not None else (None if known is None else str(known))
