"""A conversation with the host program: JSON lines over any pipe, whether ssh or a local process carries it."""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from changectl.core.errors import ContactLost, HostCallError, Refused
from changectl.core.ports import HostAddress, Json, Progress

START_TIMEOUT = 30.0  # seconds for the host program to answer its first call

# Tried in this order where the inventory names no interpreter; the bootstrap itself refuses what is too old.
PYTHONS = ("python3", "python3.13", "python3.12", "python3.11", "python3.10", "python3.9", "python3.8",
           "/usr/libexec/platform-python")  # fmt: skip


LAST_WORDS = 2.0  # seconds
LATER = 5.0  # seconds by which we give up after the host did: what it ran for us has ended when we act
SLICE = 0.2  # seconds; how soon somebody who asks the run to end is heard while a host is silent


def nobody_asks() -> None:
    """The default check: nobody asks the run to end."""


class Pipe(Protocol):
    """Bytes to and from a remote process."""

    def send(self, data: bytes) -> None:
        """Write all of it. Raises ContactLost."""

    def receive(self, seconds: float) -> bytes:
        """What came, after so many seconds at most; empty: nothing yet. Raises ContactLost: it ended."""

    def close(self) -> None:
        """End the process; never raises."""


@dataclass
class Conversation:
    """Calls over one pipe, to a host program that serves there."""

    host: str
    pipe: Pipe
    check: Callable[[], None] = nobody_asks  # raises when somebody asks the run to end
    _last: int = field(default=0, init=False)
    _buffer: bytes = field(default=b"", init=False, repr=False)
    _silent: float = field(default=0.0, init=False)  # seconds without a byte, at most, in the present call

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        """Ask the host program and wait for its answer; progress lines are passed on as they come.

        `timeout` is how long the host may be silent: each progress line is a sign of life and begins it anew, so that
        reading a large model, or a long measurement, is not cut off while it gets on. With `silence` the two also tell
        each other every second that they are there, whatever the call does meanwhile, and the answer has `silent`: the
        longest time without a sign of life.
        """
        self._last, self._silent = self._last + 1, 0.0
        request = {"id": self._last, "call": name, "args": dict(args), **({"silence": silence} if silence else {})}
        self.pipe.send(json.dumps(request).encode() + b"\n")
        deadline, patience = time.monotonic() + timeout, silence and silence + LATER
        while True:
            answer = self._answer(self._line(deadline, name, patience))
            if "alive" in answer:  # perhaps a late one, of the call before
                self.pipe.send(b"\n")
                continue
            if answer.get("id") == 0:
                return self._outcome(answer)  # the bootstrap could not start the program
            if answer.get("id") != self._last:
                raise ContactLost(f"{self.host}: the host program answered something else than was asked")
            if "progress" in answer:
                deadline = time.monotonic() + timeout
                if progress is not None:
                    progress(answer["progress"])
                continue
            return {**self._outcome(answer), **({"silent": self._silent} if silence else {})}

    def hear_out(self) -> None:
        """Read why the bootstrap ended, if it said so before it closed its input.

        Raises:
            HostCallError: it did.
        """
        with contextlib.suppress(ContactLost):
            answer = self._answer(self._line(time.monotonic() + LAST_WORDS, "hello"))
            if answer.get("id") == 0:
                self._outcome(answer)

    def _line(self, deadline: float, name: str, patience: float | None = None) -> bytes:
        """The next line; every byte is a sign of life, for a long answer takes its time on a slow network."""
        heard = time.monotonic()
        while b"\n" not in self._buffer:
            self.check()
            end = deadline if patience is None else min(deadline, heard + patience)
            data = self.pipe.receive(max(0.0, min(SLICE, end - time.monotonic())))
            now = time.monotonic()
            self._silent = max(self._silent, now - heard)
            if data:
                heard = now
            elif now >= end:
                raise ContactLost(f"{self.host}: the host program did not answer `{name}` in time")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ContactLost(f"{self.host}: unreadable answer of the host program") from error
        if not isinstance(answer, dict):
            raise ContactLost(f"{self.host}: unreadable answer of the host program")
        return answer

    def _outcome(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        if "error" in answer:
            error = answer["error"]
            details = {name: fact for name, fact in error.items() if name not in ("message", "reason")}
            raise HostCallError(f"{self.host}: {error['message']}", reason=str(error["reason"]), details=details)
        outcome: dict[str, Any] = answer["ok"]
        return outcome


@dataclass
class HostDoor:
    """Fulfils core.ports.Door; a conversation that broke off is begun anew with the next call.

    A call that does not come to its answer (the contact is lost, or somebody asks the run to end) ends its conversation
    and with it everything that it started on the host: a load that goes on running would disturb the way back.
    """

    begin: Callable[[], Conversation]  # raises ContactLost or Refused
    _open: Conversation | None = field(default=None, init=False)

    def connect(self) -> Conversation:
        """The conversation, begun if there is none."""
        if self._open is None:
            self._open = self.begin()
        return self._open

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        """Ask the host program; see the port. A call is never asked a second time by itself."""
        conversation = self.connect()
        try:
            return conversation.call(name, args, timeout=timeout, progress=progress, silence=silence)
        except HostCallError:
            raise
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the conversation; the host program ends when its input closes."""
        if self._open is not None:
            conversation, self._open = self._open, None
            conversation.pipe.close()


def greet(conversation: Conversation, program: bytes) -> None:
    """Send the host program through a fresh pipe and wait until it serves.

    Raises:
        Refused: the host cannot run it (Python too old or missing); one sentence says why.
        ContactLost: no answer.
    """
    try:
        try:
            conversation.pipe.send(f"changectl {len(program)}\n".encode() + program)
            conversation.call("hello", {}, timeout=START_TIMEOUT)
        except ContactLost:
            conversation.hear_out()
            raise
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
