"""A user of a host who may become root, but has to type a password for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.lab.harness.hosts import LabHost

NAME = "pw"
_RULES = "/etc/sudoers.d/pw"


@contextmanager
def sudo_user(host: LabHost, password: str) -> Iterator[str]:
    """Let the user exist, with the key that opens the lab's hosts, and return the name."""
    host.run(["useradd", "--create-home", "--shell", "/bin/bash", NAME])
    host.run(["chpasswd"], stdin=f"{NAME}:{password}\n")
    host.write_file(_RULES, f"{NAME} ALL=(ALL) ALL\n", mode="0440")
    host.run(["cp", "-a", "/home/ops/.ssh", f"/home/{NAME}/.ssh"])
    host.run(["chown", "-R", f"{NAME}:{NAME}", f"/home/{NAME}/.ssh"])
    try:
        yield NAME
    finally:
        # Ansible keeps its connection for a minute, and a user who is logged in cannot be removed.
        script = 'pkill -KILL -u "$1"; for i in 1 2 3 4 5; do userdel --remove "$1" && break; sleep 0.2; done'
        host.run(["sh", "-c", script, "sh", NAME])
        host.run(["rm", "-f", _RULES])
