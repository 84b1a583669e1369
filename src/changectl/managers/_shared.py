"""What holds for every manager: files of a carrier, headers of configuration managers, who holds a port."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from changectl.core.errors import EditRefused, InputError, Problem
from changectl.core.observed import Observed
from changectl.core.settings import Carrier

_HEADER_LINES = 40  # a "managed by" header stands at the top
_COMMENT = re.compile(rb"^\s*(?:#|;|//|<!--|/\*|\*|--)")
_OWNER = re.compile(
    rb"ansible[ _-]managed|managed (?:by|with|through|via)\s+(?:\S+\s+)?"
    rb"(?P<by>ansible|puppet|chef|saltstack|salt|cfengine|terraform|nixos|cloud-init)|"
    rb"(?P<by2>puppet|chef|salt|ansible|cfengine)\b.{0,40}\b(?:managed|generated|overwrit)|"
    rb"(?:generated|maintained|controlled|deployed) by\s+(?P<by3>ansible|puppet|chef|salt|cfengine|terraform)",
    re.IGNORECASE,
)
_NAMES = {"saltstack": "Salt", "cfengine": "CFEngine", "nixos": "NixOS", "cloud-init": "cloud-init"}


def carrier_file(observed: Observed, carrier: Carrier) -> list[tuple[str, bytes]]:
    """The one file of a carrier that names a file; empty where the host says that it does not exist.

    Raises:
        EditRefused: the file was not looked at, so nothing may be assumed about it.
    """
    path = carrier.file or ""
    facts = observed.files.get(path)
    if facts is None or (facts.exists is not False and facts.data is None):
        raise EditRefused(f"{path} was not read on the host", reason="not_read")
    return [(path, facts.data)] if facts.data is not None else []


def managed_by(files: Mapping[str, bytes]) -> str | None:
    """The configuration manager that a file's header names, and the file: "Ansible (/etc/x.conf)"."""
    for path, data in files.items():
        for line in data.splitlines()[:_HEADER_LINES]:
            match = _OWNER.search(line) if _COMMENT.match(line) else None
            if match:
                word = next((match[name] for name in ("by", "by2", "by3") if match[name]), b"ansible").decode().lower()
                return f"{_NAMES.get(word, word.capitalize())} ({path})"
    return None


def port_of(endpoint: str) -> int | None:
    """The port of an endpoint URL; None: none can be told."""
    try:
        parts = urlsplit(endpoint)
        return parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None


def owns_port(observed: Observed, endpoint: str) -> bool | None:
    """Whether the port's holder belongs to the manager's process tree; None where the host could not tell."""
    port, process = port_of(endpoint), observed.process
    if port is None or process is None:
        return None
    if observed.port_owner is not None:
        return observed.port_owner.pid in {process.pid, *(process.tree or ())}
    if process.listens is not None and port in process.listens:
        return True
    # Nobody holds the port, or only the tree's own ports are known and this one is not among them.
    return False if observed.port_asked or process.listens is not None else None


def section(spec: Mapping[str, Any], name: str, keys: set[str]) -> Mapping[str, Any]:
    """The manager's own part of `manager: {NAME: {...}}`, its keys checked.

    Raises:
        InputError: not a mapping, or an unknown key.
    """
    parts = spec.get(name)
    if not isinstance(parts, Mapping):
        raise problem("a mapping is expected here", name, f"known keys: {', '.join(sorted(keys))}")
    for key in parts:
        if key not in keys:
            raise problem(f"unknown key {key!r}", f"{name}/{key}", f"known: {', '.join(sorted(keys))}")
    return parts


def problem(message: str, path: str, hint: str = "") -> InputError:
    """An error in the service file's `manager`."""
    return InputError(Problem(message, path=f"manager/{path}", hint=hint))
