"""The door over ssh (paramiko): connection settings as Ansible would use them, host keys always checked."""

from __future__ import annotations

import getpass
import re
import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import paramiko

from changectl.core.errors import ContactLost, Refused
from changectl.core.ports import HostAddress

CONNECT_TIMEOUT = 15.0  # seconds; Ansible's default is 10
KEEPALIVE = 15  # seconds
_NAME_END = re.compile(r"\s*=\s*|\s+")
_TOKEN = re.compile(r"%.")


@dataclass(frozen=True)
class SshTarget:
    """Where and how to connect; merged from the inventory and ssh_config, the inventory wins as in Ansible."""

    hostname: str
    port: int
    user: str | None
    keys: tuple[str, ...]
    password: str | None = field(repr=False)
    known_hosts: tuple[str, ...]
    jump: str | None
    proxy: str | None = None  # ProxyCommand, with %h, %p and %r

    @classmethod
    def of(cls, host: HostAddress) -> SshTarget:
        """The target of an inventory host."""
        variables = host.variables
        options = _options(variables)
        address = str(variables.get("ansible_ssh_host", variables.get("ansible_host", host.name)))
        config = _ssh_config(options, address)
        key = variables.get("ansible_ssh_private_key_file", variables.get("ansible_private_key_file"))
        keys = (str(key),) if key else tuple(options.get("identityfile", ())) or tuple(config.get("identityfile", ()))
        known = _known_hosts(options, config)
        user = variables.get("ansible_user", variables.get("ansible_ssh_user", _one(options, "user")))
        port = variables.get("ansible_port", variables.get("ansible_ssh_port", _one(options, "port")))
        secret = variables.get("ansible_password", variables.get("ansible_ssh_pass"))
        return cls(
            hostname=str(config.get("hostname", address)),
            port=int(port or config.get("port", 22)),
            user=str(user) if user else config.get("user"),
            keys=tuple(str(Path(name).expanduser()) for name in keys),
            password=None if secret is None else str(secret),
            known_hosts=known,
            jump=_unless_none(_one(options, "proxyjump") or config.get("proxyjump")),
            proxy=_unless_none(_one(options, "proxycommand") or config.get("proxycommand")),
        )


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
            through = paramiko.ProxyCommand(_filled(target.proxy, target))
        if target.jump:
            for hop in target.jump.split(","):
                through = self._forward(self._open(_hop(hop, target), through), target)
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
            raise _refusal(self.host.name, target, error) from error
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


def _refusal(name: str, target: SshTarget, error: Exception) -> Exception:
    """The one sentence an operator needs for each way of not getting in."""
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
        case _:
            return ContactLost(f"{name}: cannot connect to {where}: {error}")


def _unless_none(value: str | None) -> str | None:
    """ProxyJump and ProxyCommand are switched off by the word `none`."""
    return None if value is None or value.lower() == "none" else value


def _filled(command: str, target: SshTarget) -> str:
    parts = {"%h": target.hostname, "%p": str(target.port), "%r": target.user or getpass.getuser(), "%%": "%"}
    return _TOKEN.sub(lambda match: parts.get(match[0], match[0]), command)


def _hop(text: str, target: SshTarget) -> SshTarget:
    """One hop of ProxyJump: [user@]host[:port], with its own ssh_config entry."""
    user, _, place = text.rpartition("@")
    name, _, port = place.partition(":")
    variables: dict[str, Any] = {"ansible_host": name}
    if user:
        variables["ansible_user"] = user
    if port:
        variables["ansible_port"] = port
    hop = SshTarget.of(HostAddress(name, variables))
    return SshTarget(
        hop.hostname, hop.port, hop.user, hop.keys or target.keys, None,
        tuple(dict.fromkeys(hop.known_hosts + target.known_hosts)), None,
    )  # fmt: skip


def _options(variables: Mapping[str, Any]) -> dict[str, list[str]]:
    """The `-o Name=value`, -i, -J, -p, -F of Ansible's ssh argument variables, names in lower case."""
    found: dict[str, list[str]] = {}
    short = {"-i": "identityfile", "-J": "proxyjump", "-p": "port", "-F": "config", "-l": "user"}
    for variable in ("ansible_ssh_args", "ansible_ssh_common_args", "ansible_ssh_extra_args"):
        words = shlex.split(str(variables.get(variable, "") or ""))
        for word, following in pairwise([*words, ""]):
            if word == "-o" or (word.startswith("-o") and len(word) > 2):
                name, *rest = _NAME_END.split((following if word == "-o" else word[2:]).strip(), maxsplit=1)
                found.setdefault(name.lower(), []).append("".join(rest).strip('"'))
            elif word in short:
                found.setdefault(short[word], []).append(following)
    return found


def _ssh_config(options: Mapping[str, list[str]], address: str) -> dict[str, Any]:
    path = Path(_one(options, "config") or "~/.ssh/config").expanduser()
    if not path.is_file():
        return {}
    with path.open() as stream:
        config = paramiko.SSHConfig()
        config.parse(stream)
    return dict(config.lookup(address))


def _known_hosts(options: Mapping[str, list[str]], config: Mapping[str, Any]) -> tuple[str, ...]:
    named = _one(options, "userknownhostsfile") or config.get("userknownhostsfile") or "~/.ssh/known_hosts"
    return (*str(named).split(), "/etc/ssh/ssh_known_hosts")


def _one(options: Mapping[str, list[str]], name: str) -> str | None:
    values = options.get(name)
    return values[0] if values else None
