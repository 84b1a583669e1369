"""What a fault does to a host of the lab, and whether it was really done."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from signal import SIGCONT, SIGSTOP

from tests.faults.strikes import command_line, descendants, lines, ordered, send_all, wait_gone
from tests.lab.harness.hosts import LabHost

SECONDS_DOWN = 2.0  # less than a lease
POWER_BACK = 1.0


class LabStriker:
    """Does what one fault asks for, once, and undoes later what a person would mend."""

    def __init__(self, fault: str, host: LabHost, trace: Path) -> None:
        self.fault = fault
        self.trace = trace
        self.seen = ordered(fault) != "ask"  # what the driver does by itself stands in the trace
        self._host = host
        self._struck_at: float | None = None
        self._undone = False
        self._orphans: list[int] = []

    @property
    def lasts(self) -> bool:
        """Whether the controller may be without its host: then the host alone brings the service back."""
        return self.fault in ("link-gone", "link-seconds", "power", "reboot", "sshd", "orphan")

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Look whether the point is reached, and strike."""
        if self._struck_at is None:
            if ordered(self.fault) == "ask" and lines(self.trace):
                self._strike()
                self._struck_at = time.monotonic()
                self.trace.with_name(f"{self.trace.name}.1").touch()
        elif self.fault == "orphan":
            self._orphan(process)
        elif not self._undone and time.monotonic() - self._struck_at > SECONDS_DOWN:
            self.finish()

    def finish(self) -> None:
        """What ends by itself, without anybody: a link that was down for seconds, power that comes back."""
        if self._struck_at is None or self._undone:
            return
        self._undone = True
        if self.fault == "link-seconds":
            time.sleep(max(0.0, SECONDS_DOWN - (time.monotonic() - self._struck_at)))
            self._host.restore_link()
        elif self.fault == "power":
            time.sleep(POWER_BACK)
            self._host.boot()

    def later(self) -> None:
        """After the host had its time: a late orphan wakes up."""
        send_all(self._orphans, SIGCONT)
        for pid in self._orphans:
            wait_gone(pid)

    def mended(self) -> None:
        """What a person mends before anybody looks after the run."""
        if not self._host.running:
            self._host.boot()
        self._host.restore_link()
        self._host.run(["systemctl", "start", "ssh"])
        self._host.wait_ssh()

    def _strike(self) -> None:
        if self.fault.startswith("link-"):
            self._host.cut_link()
            state = Path("/sys/class/net") / self._host.link / "operstate"
            self.seen = state.read_text().strip() == "down"
        elif self.fault == "power":
            self._host.kill()
            self.seen = not self._host.running
        elif self.fault == "reboot":
            boot = self._boot()
            self._host.reboot()
            self.seen = self._boot() != boot
        elif self.fault == "sshd":
            self._host.run(["systemctl", "stop", "ssh"])
            self.seen = self._host.run(["systemctl", "is-active", "ssh"], check=False).stdout.strip() == "inactive"

    def _boot(self) -> str:
        """A boot of a container keeps the kernel's boot id: its first process tells boots apart."""
        return Path(f"/proc/{self._host.leader}/stat").read_text().rpartition(")")[2].split()[19]

    def _orphan(self, process: subprocess.Popen[bytes]) -> None:
        """As soon as Ansible works for the command: freeze all of it, then end the command with no time to say so."""
        if self._orphans:
            return
        children = list(descendants(process.pid))
        if any("ansible-playbook" in command_line(pid) for pid in children):
            self._orphans = [pid for pid in children if "ansible" in command_line(pid)]
            send_all(self._orphans, SIGSTOP)
            process.kill()
            self.seen = bool(self._orphans)
