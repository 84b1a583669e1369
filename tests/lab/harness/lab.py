"""The lab as a whole: one bridge, one pair of keys, and hosts that boot when they are asked for."""

from __future__ import annotations

import fcntl
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import TextIO

from tests.lab.harness import mlserver_install, network, root, vllm_install
from tests.lab.harness.hosts import LabError, LabHost
from tests.lab.harness.leftovers import remove_leftovers
from tests.lab.harness.paths import CACHE, NUMBER

HOSTS = CACHE / f"hosts{NUMBER}"
#: Another test run may be using the lab; its hosts have the same names and addresses.
WAIT_FOR_OTHER_LAB = 900.0
NUMBERS = {"h1": 11, "h2": 12, "v1": 13, "m1": 15, "c1": 21}


class Lab:
    """Use it as a context manager: whatever it started is stopped at the end, also after an exception."""

    def __init__(self, folder: Path = HOSTS) -> None:
        self.folder = folder
        self.hosts: dict[str, LabHost] = {}
        self._lock: TextIO | None = None

    @property
    def private_key(self) -> Path:
        """The key that opens root and ops on every host."""
        return self.folder / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The hosts' own keys, taken from their disks and not from the network."""
        return self.folder / "known_hosts"

    def __enter__(self) -> Lab:
        self._take_lock()
        remove_leftovers(self.folder)
        self.folder.mkdir(parents=True)
        network.bridge_up()
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f", str(self.private_key)]
        subprocess.run(command, check=True)
        self.known_hosts.touch()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for host in self.hosts.values():
            host.signal_stop()
        for host in self.hosts.values():
            host.stop()
            host.remove()
        self.hosts.clear()
        remove_leftovers(self.folder)
        if self._lock is not None:
            self._lock.close()

    def host(self, name: str) -> LabHost:
        """Return a host, booted and reachable; the first call boots it (about 4 s)."""
        return self.up(name)[0]

    def up(self, *names: str) -> list[LabHost]:
        """Return several hosts; those that are not up yet boot at the same time.

        Raises:
            LabError: there is no such host, or one did not come up.
        """
        new = [self._new(name) for name in names if name not in self.hosts]
        for host in new:
            host.prepare()
            self.hosts[host.name] = host
        with self.known_hosts.open("a") as file:
            file.writelines(f"{host.address} {host.host_key}\n" for host in new)
        for host in new:
            host.start()
        for host in new:
            host.wait_booted()
        return [self.hosts[name] for name in names]

    def _new(self, name: str) -> LabHost:
        if name not in NUMBERS:
            raise LabError(f"the lab has no host {name!r}; hosts: {', '.join(NUMBERS)}")
        binds = [(root.engine(), root.ENGINE_MOUNT)]
        # At the same path as outside: the scripts of a virtual environment name it.
        binds += [(each.FOLDER, str(each.FOLDER)) for each in (vllm_install, mlserver_install) if each.installed()]
        return LabHost(
            name=name,
            address=network.address(NUMBERS[name]),
            folder=self.folder / name,
            root=root.root(),
            public_key=self.private_key.with_suffix(".pub").read_text(),
            private_key=self.private_key,
            known_hosts=self.known_hosts,
            binds=tuple(binds),
        )

    def _take_lock(self) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        self._lock = (CACHE / f"lab{NUMBER}.lock").open("w")
        deadline = time.monotonic() + WAIT_FOR_OTHER_LAB
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise LabError("another lab has been up all the time; stop it first") from None
                time.sleep(0.5)
