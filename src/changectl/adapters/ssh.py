"""The door over ssh (paramiko): connection settings as Ansible would use them, host keys always checked."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import paramiko
from paramiko.ssh_exception import NoValidConnectionsError

from changectl.adapters.ssh_target import SshTarget, filled, hop_of
from changectl.core.errors import ContactLost, Refused
from changectl.core.ports import HostAddress

CONNECT_TIMEOUT = 15.0  # seconds; Ansible's default is 10
KEEPALIVE = 15  # seconds


@dataclass
class SshPipe:
    """A remote process on one ssh connection of its own."""

    host: HostAddress
    command: str
    _clients: list[paramiko.SSHClient] = field(default_factory=list, init=False)
    _channel: paramiko.Channel = field(init=False)

    def __post_init__(self) -> None:
        try:
            client = self._connect(SshTarget.of(self.host))
            self._channel = self._transport(client).open_session(timeout=CONNECT_TIMEOUT)
            self._channel.exec_command(self.command)
        except (paramiko.SSHException, EOFError, OSError) as error:
            self.close()
            text = f"{self.host.name}: ssh let us in, and the connection ended before the host program ran: {error}"
            raise ContactLost(text) from error
        except BaseException:
            self.close()
            raise

    def send(self, data: bytes) -> None:
        """Write all of it."""
        try:
            self._channel.settimeout(60.0)
            self._channel.sendall(data)
        except OSError as error:
            raise self._lost(error) from error

    def receive(self, seconds: float) -> bytes:
        """What came, after so many seconds at most."""
        self._channel.settimeout(seconds)
        try:
            data = self._channel.recv(1 << 16)
        except TimeoutError:
            return b""
        except (OSError, paramiko.SSHException) as error:
            raise self._lost(error) from error
        if not data:
            raise self._lost(None)
        return data

    def close(self) -> None:
        """Close the connection and those it jumped through, nearest last."""
        while self._clients:
            self._clients.pop().close()

    def _connect(self, target: SshTarget) -> paramiko.SSHClient:
        through: Any = None
        if target.jump is None and target.proxy is not None:
            through = paramiko.ProxyCommand(filled(target.proxy, target))
        if target.jump:
            for hop in target.jump.split(","):
                through = self._forward(self._open(hop_of(hop, target), through), target)
        return self._open(target, through)

    def _open(self, target: SshTarget, through: Any) -> paramiko.SSHClient:
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        for name in target.known_hosts:
            if Path(name).expanduser().is_file():
                client.load_host_keys(str(Path(name).expanduser()))
        self._clients.append(client)
        try:
            client.connect(
                target.hostname,
                port=target.port,
                username=target.user,
                password=target.password,
                key_filename=list(target.keys) or None,  # type: ignore[arg-type]  # paramiko takes several; its stubs one
                timeout=CONNECT_TIMEOUT,
                banner_timeout=CONNECT_TIMEOUT,
                auth_timeout=CONNECT_TIMEOUT,
                sock=through,
                look_for_keys=not target.keys,
            )
        except (paramiko.BadHostKeyException, paramiko.SSHException, OSError) as error:
            transport = client.get_transport()
            met = transport is not None and transport.is_active()
            raise _refusal(self.host.name, target, error, met=met) from error
        return client

    def _forward(self, client: paramiko.SSHClient, target: SshTarget) -> paramiko.Channel:
        place = (target.hostname, target.port)
        return self._transport(client).open_channel("direct-tcpip", place, ("127.0.0.1", 0), timeout=CONNECT_TIMEOUT)

    def _transport(self, client: paramiko.SSHClient) -> paramiko.Transport:
        transport = client.get_transport()
        if transport is None:
            raise ContactLost(f"{self.host.name}: the ssh connection ended at once")
        transport.set_keepalive(KEEPALIVE)
        return transport

    def _lost(self, error: BaseException | None) -> ContactLost:
        if isinstance(error, socket.timeout):
            return ContactLost(f"{self.host.name}: the host program did not answer in time")
        detail = "" if error is None else f" ({error})"
        said = b""
        if self._channel.recv_stderr_ready():
            said = self._channel.recv_stderr(2000)
        tail = said.decode(errors="replace").strip()
        return ContactLost(f"{self.host.name}: the connection to the host program ended{detail}. {tail}".rstrip(". "))


def _refusal(name: str, target: SshTarget, error: Exception, *, met: bool) -> Exception:
    """The one sentence an operator needs for each way of not getting in.

    Args:
        name: the host, as the inventory calls it.
        target: where we wanted to go.
        error: what paramiko said.
        met: whether the server answered at all.
    """
    where = f"{target.hostname}:{target.port}"
    match error:
        case paramiko.BadHostKeyException():
            return Refused(
                f"{name}: the host key of {where} is not the known one: somebody listens in, or the host was rebuilt",
                reason="host_key_changed",
            )
        case paramiko.AuthenticationException():
            return Refused(f"{name}: {where} does not accept this user and key ({target.user})", reason="no_access")
        case paramiko.SSHException() if "not found in known_hosts" in str(error):
            files = ", ".join(target.known_hosts)
            return Refused(
                f"{name}: the host key of {where} is unknown; check it, then add it to {files} (ssh-keyscan shows it)",
                reason="host_key_unknown",
            )
        case paramiko.SSHException() if met:
            # With several kinds of keys tried, what paramiko says is only why the last kind did not fit.
            return Refused(f"{name}: {where} does not accept this user and key ({target.user})", reason="no_access")
        case _:
            return ContactLost(f"{name}: cannot connect to {where}: {_unreachable(error)}")


def _unreachable(error: Exception) -> str:
    """Why nobody could be reached, and what to look at."""
    match error:
        case socket.gaierror():
            return f"no address is known for that name ({error.strerror}); see ansible_host in the inventory"
        case TimeoutError():
            return f"no answer within {CONNECT_TIMEOUT:.0f} s; see whether it is up, and what a firewall lets through"
        case NoValidConnectionsError():
            causes = dict.fromkeys(getattr(one, "strerror", None) or str(one) for one in error.errors.values())
            said = ", ".join(causes).lower()
            return f"{said}; see whether the host is up, and whether sshd listens there (ansible_host, ansible_port)"
        case _:
            return str(error)
