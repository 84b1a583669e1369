"""One bridge for all hosts of the lab, with addresses that exist on this machine only."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.lab.harness.paths import NUMBER

BRIDGE = f"changectl-lab{NUMBER}"
LINK = f"vb-cl{NUMBER}-"
PREFIX = f"10.213.{77 + int(NUMBER or 0)}"
#: The machine the tests run on, as the hosts see it.
CONTROLLER = f"{PREFIX}.1"


def address(number: int) -> str:
    """Return the address of the host with this number."""
    return f"{PREFIX}.{number}"


def bridge_up() -> None:
    """Make the bridge; it forwards nothing to the outside."""
    ip("link", "add", BRIDGE, "type", "bridge")
    ip("addr", "add", f"{CONTROLLER}/24", "dev", BRIDGE)
    ip("link", "set", BRIDGE, "up")


def remove_link(name: str) -> None:
    """Remove a host's link if it is still there."""
    subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


def bridge_down() -> None:
    """Remove the bridge, and the links of hosts that died on it, if they are there."""
    for entry in Path("/sys/class/net").iterdir():
        if entry.name.startswith(LINK):
            remove_link(entry.name)
    subprocess.run(["ip", "link", "del", BRIDGE], check=False, capture_output=True)


def ip(*arguments: str) -> None:
    """Run one `ip` command on this machine; raise CalledProcessError if it is refused."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
