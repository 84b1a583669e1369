"""Run changectl as a person would: the installed command, in the project's folder, with its own exit code."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changectl.demo.server import NotAsPromised


def program() -> list[str]:
    """The command line that starts changectl: the console script beside this Python, else the module."""
    script = shutil.which("changectl", path=str(Path(sys.executable).parent))
    return [script] if script else [sys.executable, "-m", "changectl.cli.main"]


@dataclass
class Changectl:
    """changectl in one project."""

    project: Path
    command: Sequence[str] = field(default_factory=program)

    def run(self, *arguments: str, expected: Sequence[int] = (0,)) -> int:
        """Run it with its output on ours; returns its exit code.

        Raises:
            NotAsPromised: it ended with an exit code that was not expected.
        """
        return self._end(arguments, expected, None)[0]

    def read(self, *arguments: str) -> dict[str, Any]:
        """What a command tells as JSON.

        Raises:
            NotAsPromised: it failed, or what it printed is no JSON object.
        """
        _, out = self._end((*arguments, "--json"), (0,), subprocess.PIPE)
        try:
            document = json.loads(out)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise NotAsPromised(f"changectl {' '.join(arguments)} --json did not print a JSON object")
        return document

    def _environment(self) -> dict[str, str]:
        """The demo plays a host of its own: its lease lies in its folder, and meets no other demo's."""
        return {"CHANGECTL_HOST_DIR": str(self.project / "state" / "host"), **os.environ}

    def _end(self, arguments: Sequence[str], expected: Sequence[int], stdout: int | None) -> tuple[int, str]:
        # Its own session: it hears of Ctrl-C once, from us, and we wait until it has brought everything back.
        process = subprocess.Popen(
            [*self.command, *arguments], cwd=self.project, stdin=subprocess.DEVNULL, stdout=stdout, text=True,
            start_new_session=True, env=self._environment(),
        )  # fmt: skip
        try:
            out, _ = process.communicate()
        except BaseException:
            process.send_signal(signal.SIGINT)
            process.communicate()
            raise
        if process.returncode not in expected:
            promised = " or ".join(str(code) for code in expected)
            raise NotAsPromised(
                f"changectl {' '.join(arguments)} ended with exit code {process.returncode}; {promised} was promised"
            )
        return process.returncode, out or ""
