"""Where to connect over ssh, and how: from Ansible's variables and ssh arguments, then from ssh_config."""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import paramiko

from changectl.core.ports import HostAddress

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


def hop_of(text: str, target: SshTarget) -> SshTarget:
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


def filled(command: str, target: SshTarget) -> str:
    """A ProxyCommand with its %h, %p and %r."""
    parts = {"%h": target.hostname, "%p": str(target.port), "%r": target.user or getpass.getuser(), "%%": "%"}
    return _TOKEN.sub(lambda match: parts.get(match[0], match[0]), command)


def _unless_none(value: str | None) -> str | None:
    """ProxyJump and ProxyCommand are switched off by the word `none`."""
    return None if value is None or value.lower() == "none" else value


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
