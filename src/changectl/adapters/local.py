"""The door to this machine itself (`ansible_connection: local`): the host program as a child process."""

from __future__ import annotations

import os
import select
import subprocess
import time
from dataclasses import dataclass, field

from changectl.adapters.environment import allowed
from changectl.core.errors import ContactLost


@dataclass
class LocalPipe:
    """Pipes to a child process in its own session, so that a terminal's Ctrl-C reaches only the controller."""

    command: str
    _process: subprocess.Popen[bytes] = field(init=False)
    _buffer: bytes = field(default=b"", init=False)

    def __post_init__(self) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", self.command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env=allowed(os.environ),
        )

    def send(self, data: bytes) -> None:
        """Write all of it."""
        assert self._process.stdin is not None  # noqa: S101  (Popen was given PIPE)
        try:
            self._process.stdin.write(data)
            self._process.stdin.flush()
        except OSError as error:
            raise ContactLost(f"the host program on this machine ended: {error}") from error

    def read_line(self, deadline: float) -> bytes:
        """One line, waiting until `deadline` at most."""
        assert self._process.stdout is not None  # noqa: S101  (Popen was given PIPE)
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise ContactLost("the host program on this machine did not answer in time")
            data = os.read(descriptor, 1 << 16)
            if not data:
                raise ContactLost(f"the host program on this machine ended (status {self._process.wait()})")
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line + b"\n"

    def close(self) -> None:
        """Close its input; it ends by itself, or is ended after five seconds."""
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
