"""The door to this machine itself (`ansible_connection: local`): the host program as a child process."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import tempfile
from dataclasses import dataclass, field
from typing import IO

from changectl.adapters.environment import allowed
from changectl.core.errors import ContactLost

SAID = 2000  # bytes of its error output that a message quotes
CLOSE_WITHIN = 5.0  # seconds for the host program to end by itself


@dataclass
class LocalPipe:
    """Pipes to a child process in its own session, so that a terminal's Ctrl-C reaches only the controller."""

    command: str
    _process: subprocess.Popen[bytes] = field(init=False)
    _errors: IO[bytes] = field(init=False)

    def __post_init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (lives as long as the pipe)
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", f"exec {self.command}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,
            env=allowed(os.environ),
            bufsize=0,
        )

    def send(self, data: bytes) -> None:
        """Write all of it."""
        assert self._process.stdin is not None  # noqa: S101  (Popen was given PIPE)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._process.stdin.write(rest) or 0 :]
        except (OSError, ValueError) as error:
            raise self._ended(str(error)) from error

    def receive(self, seconds: float) -> bytes:
        """What came, after so many seconds at most."""
        assert self._process.stdout is not None  # noqa: S101  (Popen was given PIPE)
        descriptor = self._process.stdout.fileno()
        if not select.select([descriptor], [], [], seconds)[0]:
            return b""
        data = os.read(descriptor, 1 << 16)
        if not data:
            raise self._ended(f"status {self._status()}")
        return data

    def close(self) -> None:
        """Close its input; it ends by itself, or is ended after five seconds."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._status()
        self._errors.close()

    def _status(self) -> int:
        try:
            return self._process.wait(timeout=CLOSE_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _ended(self, why: str) -> ContactLost:
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - SAID))
        said = self._errors.read().decode(errors="replace").strip()
        return ContactLost(f"the host program on this machine ended ({why}). {said}".rstrip(". "))
