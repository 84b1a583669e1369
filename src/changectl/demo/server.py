"""The demo's inference server: started by its own script, found by its pid file, and surely stopped."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from pathlib import Path

LOAD_DEADLINE = 60.0  # seconds; it takes one or two
STOP_DEADLINE = 10.0  # seconds until it is ended by force
_POLL = 0.1


class NotAsPromised(Exception):
    """The demo saw something other than it promised; the text says what."""


class Server:
    """The server of one demo folder, whoever started it last: the demo or changectl."""

    def __init__(self, project: Path, port: int, stop_deadline: float = STOP_DEADLINE) -> None:
        self._folder = project / "service"
        self._port = port
        self._stop_deadline = stop_deadline

    def start(self) -> float:
        """Start it and wait until the model is loaded; returns the seconds that took.

        Raises:
            NotAsPromised: it ended, or was not ready in time; with the end of its log.
        """
        begun = time.monotonic()
        # A session of its own: a terminal's Ctrl-C must not end the server before the change is undone.
        subprocess.run(["./run-chat", "start"], cwd=self._folder, check=True, start_new_session=True)
        while time.monotonic() - begun < LOAD_DEADLINE:
            if self._healthy():
                return time.monotonic() - begun
            if self.pid() is None and time.monotonic() - begun > 1:
                raise NotAsPromised(f"the server ended while it started:\n{self._log_end()}")
            time.sleep(_POLL)
        raise NotAsPromised(f"the server did not load its model within {LOAD_DEADLINE:.0f} s:\n{self._log_end()}")

    def pid(self) -> int | None:
        """The process of the pid file, if it runs and is this server (numbers are given again)."""
        try:
            pid = int((self._folder / "chat.pid").read_text())
            here = Path(f"/proc/{pid}/cwd").resolve(strict=True) == self._folder.resolve()
            running = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (OSError, ValueError):
            return None
        return pid if here and running else None

    def stop(self) -> None:
        """End it, by force if it does not listen; nothing happens if it does not run."""
        deadline = time.monotonic() + self._stop_deadline
        while (pid := self.pid()) is not None:
            late = time.monotonic() > deadline
            try:
                os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
            except ProcessLookupError:
                return
            time.sleep(_POLL)

    def arguments(self) -> str:
        """What its settings file says now."""
        return (self._folder / "chat.env").read_text()

    def _healthy(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=2)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _log_end(self) -> str:
        try:
            lines = (self._folder / "server.log").read_text(errors="replace").splitlines()
        except OSError:
            return "(it wrote no log)"
        return "\n".join(lines[-15:])
