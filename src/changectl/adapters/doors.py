"""Opens the door to a host: ssh or this machine, chosen as Ansible's `ansible_connection` says."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from changectl.adapters.door import (
    Conversation,
    HostDoor,
    Pipe,
    greet,
    nobody_asks,
    remote_command,
    sudo_password,
)
from changectl.core.errors import InputError
from changectl.core.ports import Door, HostAddress


@dataclass(frozen=True)
class HostDoors:
    """Fulfils core.ports.Doors."""

    playbooks: Path
    become_password: str | None = field(default=None, repr=False)
    check: Callable[[], None] = nobody_asks  # raises when somebody asks the run to end

    def open(self, host: HostAddress) -> Door:
        """Connect (host key checked) and start the host program from memory: nothing is written on the host."""
        door = HostDoor(lambda: self._begin(host))
        door.connect()
        return door

    def _begin(self, host: HostAddress) -> Conversation:
        bootstrap, program = (host_module(self.playbooks, name) for name in ("bootstrap", "program"))
        password = sudo_password(host, self.become_password)
        pipe = self._pipe(host, remote_command(host, bootstrap.BOOTSTRAP, password))
        conversation = Conversation(host.name, pipe, self.check)
        try:
            if password is not None:
                pipe.send(password.encode() + b"\n")
            greet(conversation, program.program_zip())
        except BaseException:
            pipe.close()
            raise
        return conversation

    def _pipe(self, host: HostAddress, command: str) -> Pipe:
        connection = str(host.variables.get("ansible_connection", "ssh"))
        if connection == "local":
            from changectl.adapters.local import LocalPipe

            return LocalPipe(command)
        if connection in ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh"):
            from changectl.adapters.ssh import SshPipe  # heavy: paramiko

            return SshPipe(host, command)
        raise InputError(f"host {host.name}: ansible_connection {connection!r} is not supported; use ssh or local")


def host_module(playbooks: Path, name: str) -> ModuleType:
    """A module of the host program's own package: the text that starts it on a host, and the zip that travels there.

    Raises:
        InputError: this installation is not whole.
    """
    folder = playbooks / "module_utils"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    try:
        return importlib.import_module(f"changectl_host.{name}")
    except ModuleNotFoundError as error:
        raise InputError(f"the host program is missing from {folder} ({error}); reinstall changectl") from error
