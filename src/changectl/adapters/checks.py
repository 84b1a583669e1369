"""The operator's own checks: pytest with testinfra, in a process of their own, against one host of the inventory."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from changectl.adapters.door import SLICE, nobody_asks, sudo_password
from changectl.adapters.environment import for_ansible
from changectl.core.ports import ChecksResult, HostAddress

TIMEOUT = 600.0  # seconds for all checks of a step on one host
KEPT = 4000  # characters of output
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?)")


@dataclass(frozen=True)
class TestinfraChecks:
    """Fulfils core.ports.Checks."""

    source: Path  # the operator's inventory
    playbooks: Path
    project: Path
    check: Callable[[], None] = nobody_asks  # raises when somebody asks the run to end
    vault_ids: Sequence[str] = ()
    become_password: str | None = field(default=None, repr=False)  # as given with -K
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def run(self, files: Sequence[str], host: HostAddress) -> ChecksResult:
        """Run the files; what cannot be collected, or no test at all, is a failure."""
        password = sudo_password(host, self.become_password)
        # testinfra's own ssh cannot answer sudo; Ansible can, at the price of a second per question.
        way = "" if password is None else "?force_ansible=True"
        with tempfile.TemporaryDirectory(prefix="changectl-checks-") as folder:
            command = [
                sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "-c", os.devnull,
                "--rootdir", folder, f"--hosts=ansible://{host.name}{way}",
                f"--ansible-inventory={self.source.resolve()}", *files,
            ]  # fmt: skip
            return self._watched(command, self._environment(folder, password))

    def _environment(self, folder: str, password: str | None) -> dict[str, str]:
        """Testinfra passes no options on to Ansible, but its environment."""
        environment = for_ansible(self.environ, self.playbooks, Path(sys.executable))
        environment.update(PYTHONDONTWRITEBYTECODE="1", TMPDIR=folder)
        if self.vault_ids:
            environment["ANSIBLE_VAULT_IDENTITY_LIST"] = ",".join(self.vault_ids)
        if password is not None:
            environment["ANSIBLE_BECOME_PASS"] = password
        return environment

    def _watched(self, command: Sequence[str], environment: Mapping[str, str]) -> ChecksResult:
        """In a session of its own, so that a terminal's Ctrl-C reaches only us; ended with all that it started."""
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
            cwd=self.project, start_new_session=True,
        )  # fmt: skip
        deadline = time.monotonic() + TIMEOUT
        try:
            while time.monotonic() < deadline:
                self.check()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    output, _ = process.communicate(timeout=SLICE)
                    return _result(process.returncode, output.decode(errors="replace"))
            return ChecksResult(0, 1, f"the checks did not end within {TIMEOUT:.0f} s")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()


def _result(status: int, output: str) -> ChecksResult:
    lines = output.strip().splitlines()
    counts = {word.rstrip("s"): int(number) for number, word in _COUNTS.findall(lines[-1] if lines else "")}
    failed = counts.get("failed", 0) + counts.get("error", 0)
    if status != 0 and failed == 0:
        failed = 1
    return ChecksResult(counts.get("passed", 0), failed, output[-KEPT:])
