"""How many TCP connections this host has with one address, or to one of its own ports: what is still under way."""

from __future__ import annotations

import ipaddress
import socket
import sys
from typing import Any, Dict, Iterator, Set, Tuple

from . import procfs
from .failure import Failure

_ESTABLISHED = "01"


def connections(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {count}.

    Args:
        args: `remote`: HOST:PORT that this host is connected to; or `local_port`: one of its own, with anybody else.

    Raises:
        Failure: `bad_arguments`; `unknown_address`: the name cannot be looked up.
    """
    if args.get("local_port"):
        port = int(args["local_port"])
        return {"count": sum(1 for local, far in _established() if local[1] == port and not far[0].is_loopback)}
    wanted = _addresses(str(args.get("remote") or ""))
    return {"count": sum(1 for _, far in _established() if (str(far[0]), far[1]) in wanted)}


def _addresses(remote: str) -> Set[Tuple[str, int]]:
    host, _, port = remote.rpartition(":")
    if not host or not port.isdigit():
        raise Failure("bad_arguments", f"remote must be HOST:PORT, not {remote!r}")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise Failure("unknown_address", f"{host} cannot be looked up: {error}") from error
    return {(str(ipaddress.ip_address(str(entry[4][0]).split("%")[0])), int(port)) for entry in found}


def _established() -> Iterator[Tuple[Tuple[Any, int], Tuple[Any, int]]]:
    for name in ("tcp", "tcp6"):
        for line in procfs.read_text(f"/proc/net/{name}").splitlines()[1:]:
            fields = line.split()
            if len(fields) > 3 and fields[3] == _ESTABLISHED:
                yield _end(fields[1]), _end(fields[2])


def _end(text: str) -> Tuple[Any, int]:
    """An address as the kernel writes it: words of four bytes in the host's own order."""
    digits, _, port = text.partition(":")
    order = -1 if sys.byteorder == "little" else 1
    raw = b"".join(bytes.fromhex(digits[at : at + 8])[::order] for at in range(0, len(digits), 8))
    address = ipaddress.ip_address(raw)
    return getattr(address, "ipv4_mapped", None) or address, int(port, 16)
