"""One host of the lab: a real systemd and sshd in a container, which can be cut off, killed and rebooted."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.lab.harness import cgroups, disk, network
from tests.lab.harness.leftovers import descendants
from tests.lab.harness.paths import NUMBER

ENVIRONMENT = ("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LC_ALL=C.UTF-8")


class LabError(Exception):
    """A host of the lab did not do what the lab itself needs."""


@dataclass
class LabHost:
    """A host; everything it writes lies in `folder` and goes with the lab.

    `binds` are folders of this machine that the host sees read-only, as (outside, inside).
    """

    name: str
    address: str
    folder: Path
    root: Path
    public_key: str
    private_key: Path
    known_hosts: Path
    binds: tuple[tuple[Path, str], ...] = ()
    boot_seconds: float = 0.0
    _started: float = 0.0
    _nspawn: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def merged(self) -> Path:
        """The host's root as this machine sees it. Follow no symbolic links here: they would lead to this machine."""
        return self.folder / "root"

    @property
    def link(self) -> str:
        """The name of this machine's end of the host's network link."""
        return f"{network.LINK}{self.name}"

    @property
    def host_key(self) -> str:
        """The host's public key, read from its own disk: `type key`."""
        text = (self.merged / "etc/ssh/ssh_host_ed25519_key.pub").read_text()
        return " ".join(text.split()[:2])

    @property
    def leader(self) -> int:
        """The process id, on this machine, of the host's process 1."""
        if self._nspawn is None or self._nspawn.poll() is not None:
            raise LabError(f"host {self.name} is not running; its console: {self.console()[-2000:]}")
        for pid in descendants(self._nspawn.pid):
            status = Path(f"/proc/{pid}/status").read_text()
            if any(line.startswith("NSpid:") and line.split()[-1] == "1" for line in status.splitlines()):
                return pid
        raise LabError(f"host {self.name} has no process 1 yet")

    @property
    def running(self) -> bool:
        """Whether the host has been started and not ended since."""
        return self._nspawn is not None and self._nspawn.poll() is None

    def prepare(self) -> None:
        """Lay the host's own disk over the common root."""
        disk.prepare(self.folder, self.root, self.name, self.address, self.public_key)

    def boot(self, timeout: float = 60) -> None:
        """Start the host and wait until it is up and its sshd answers; raise LabError if it does not in time."""
        self.start()
        self.wait_booted(timeout)

    def start(self) -> None:
        """Start the host without waiting for it."""
        self._started = time.monotonic()
        groups = [str(group) for group in cgroups.made(self.name)]
        binds = [f"--bind-ro={outside}:{inside}" for outside, inside in self.binds]
        command = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", f"--directory={self.merged}"]
        command += [f"--machine=cl{NUMBER}-{self.name}", f"--network-bridge={network.BRIDGE}", *binds, "--boot"]
        with (self.folder / "console").open("ab") as console:
            # A session of its own: Ctrl-C in the test run must not reach it before the lab has stopped it in order.
            self._nspawn = subprocess.Popen(
                ["sh", "-c", cgroups.JOIN, "sh", *groups, "--", *command],
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=console,
                start_new_session=True,
            )

    def wait_booted(self, timeout: float = 60) -> None:
        """Wait until a started host is up and its sshd answers; raise LabError if it does not in time."""
        self.wait_ssh(timeout)
        state = self.run(["systemctl", "is-system-running", "--wait"], check=False, timeout=timeout).stdout.strip()
        if state != "running":
            failed = self.run(["systemctl", "--failed", "--no-legend"], check=False).stdout
            raise LabError(f"host {self.name} is {state or 'silent'}: {failed}{self.console()[-2000:]}")
        self.boot_seconds = time.monotonic() - self._started

    def wait_ssh(self, timeout: float = 30) -> None:
        """Wait until the host's sshd says its name; raise LabError with what is known if it does not in time."""
        deadline = time.monotonic() + timeout
        heard = "nothing yet"
        while time.monotonic() < deadline and self.running:
            try:
                with socket.create_connection((self.address, 22), timeout=1) as connection:
                    heard = connection.recv(8).decode(errors="replace")
                if heard.startswith("SSH-2.0"):
                    return
            except OSError as problem:
                heard = str(problem)
            time.sleep(0.05)
        raise LabError(f"host {self.name} has no sshd ({heard}): {self.console()[-1000:]}{self._network()}")

    def _network(self) -> str:
        with contextlib.suppress(LabError):
            return self.run(["sh", "-c", "ip -br addr; ss -ltn; systemctl --failed --no-legend"], check=False).stdout
        return ""

    def run(
        self, argv: list[str], *, check: bool = True, stdin: str | bytes = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside the host as root, without ssh; raise LabError if it fails and `check` is set."""
        done = self.run_bytes(argv, check=check, stdin=stdin, timeout=timeout)
        out, err = (stream.decode(errors="replace") for stream in (done.stdout, done.stderr))
        return subprocess.CompletedProcess(done.args, done.returncode, out, err)

    def run_bytes(
        self, argv: list[str], *, check: bool = True, stdin: str | bytes = "", timeout: float = 60
    ) -> subprocess.CompletedProcess[bytes]:
        """Like `run`, with the output as bytes."""
        enter = [
            "nsenter",
            f"--target={self.leader}",
            "--mount",
            "--uts",
            "--ipc",
            "--net",
            "--pid",
            "--root",
            "--wd=/",
        ]
        data = stdin.encode() if isinstance(stdin, str) else stdin
        command = [*enter, "env", "--ignore-environment", *ENVIRONMENT, *argv]
        done = subprocess.run(command, input=data, capture_output=True, timeout=timeout, check=False)
        if check and done.returncode != 0:
            text = (done.stderr + done.stdout).decode(errors="replace")
            raise LabError(f"on {self.name}: {' '.join(argv)} ended with {done.returncode}: {text[-2000:]}")
        return done

    def ssh_command(self, user: str = "root") -> list[str]:
        """Return the start of an ssh command line to this host: its key is checked, and nothing is asked."""
        options = {
            "BatchMode": "yes",
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(self.known_hosts),
            "IdentitiesOnly": "yes",
            "ConnectTimeout": "5",
        }
        words = [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
        return ["ssh", "-F", "none", "-i", str(self.private_key), *words, f"{user}@{self.address}"]

    def ssh(self, command: str, *, user: str = "root", timeout: float = 60) -> subprocess.CompletedProcess[str]:
        """Run a shell command over ssh; the result is not checked."""
        argv = [*self.ssh_command(user), command]
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )

    def read_file(self, path: str) -> bytes:
        """Return the content of a file of the host."""
        return self.run_bytes(["cat", "--", path]).stdout

    def write_file(self, path: str, content: str | bytes, *, mode: str = "0644", owner: str = "root:root") -> None:
        """Write a file of the host in place (a link is followed), making its folder, with this mode and owner."""
        self.run(["mkdir", "-p", "--", str(Path(path).parent)])
        self.run(["tee", "--", path], stdin=content)
        self.run(["chmod", mode, "--", path])
        self.run(["chown", owner, "--", path])

    def cut_link(self) -> None:
        """Cut the host off the network: nothing is refused, everything is lost."""
        network.ip("link", "set", self.link, "down")

    def restore_link(self) -> None:
        """Put the link back."""
        network.ip("link", "set", self.link, "up")

    def kill(self) -> None:
        """Cut the power: every process of the host ends now, its disk stays as it is. `boot` starts it again."""
        if self._nspawn is None:
            return
        for pid in (*descendants(self._nspawn.pid), self._nspawn.pid):
            _send(pid, signal.SIGKILL)
        self._nspawn.wait(timeout=20)
        self._nspawn = None
        # The kernel takes a dead host's link away some time later; a new boot must not meet it.
        network.remove_link(self.link)

    def stop(self, timeout: float = 15) -> None:
        """Shut the host down in order, and after `timeout` seconds by force."""
        if self._nspawn is None:
            return
        self.signal_stop()
        try:
            self._nspawn.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.kill()
        self._nspawn = None

    def signal_stop(self) -> None:
        """Ask the host to shut down, without waiting."""
        if self._nspawn is not None:
            self._nspawn.terminate()

    def reboot(self, timeout: float = 60) -> None:
        """Reboot the host from inside and wait until it is back."""
        self.run(["systemctl", "reboot"], check=False)
        if self._nspawn is not None:
            self._nspawn.wait(timeout=timeout)
        self.boot(timeout)

    def console(self) -> str:
        """Return what the host printed while booting."""
        path = self.folder / "console"
        return path.read_text(errors="replace") if path.exists() else ""

    def remove(self) -> None:
        """Undo the mount and throw the host's disk away; stop it before."""
        subprocess.run(["umount", "--lazy", str(self.merged)], check=False, capture_output=True)
        shutil.rmtree(self.folder, ignore_errors=True)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
