"""A cell's own small world: private mounts, processes and loopback, so that cells can run side by side.

`inside.py ORDER.json RESULT.json` is started by `unshare` as process 1 of it. It keeps the state folder of the whole
machine and systemd out of sight, brings loopback up, lets a child do the cell, and buries whatever is orphaned.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path

from tests.faults.local_cell import carry_out, dry_run
from tests.faults.pair import pair
from tests.faults.race import race

TMPFS_SIZE = "64m"
HOST_FOLDER = Path("/var/lib/changectl")
#: Where it is seen, a dead-man asks systemd for a unit, which knows nothing of this world.
SYSTEMD = Path("/run/systemd")
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def mount_tmpfs(place: Path, size: str = TMPFS_SIZE, mode: str = "0755") -> None:
    """Lay an empty disk of this size over a folder. Raises OSError."""
    library = ctypes.CDLL(None, use_errno=True)
    options = f"size={size},mode={mode}".encode()
    if library.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, options):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(place))


def hide() -> None:
    """Lay an empty disk over the whole machine's own state folder, and over systemd's."""
    try:
        HOST_FOLDER.mkdir(mode=0o700, exist_ok=True)
    except PermissionError:
        mount_tmpfs(HOST_FOLDER.parent)
        HOST_FOLDER.mkdir(mode=0o700)
    else:
        mount_tmpfs(HOST_FOLDER, mode="0700")
    if SYSTEMD.is_dir():
        mount_tmpfs(SYSTEMD)


def loopback_up() -> None:
    """Bring `lo` of this network namespace up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        name = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack("16xh14x", fcntl.ioctl(control, SIOCGIFFLAGS, name))
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))


def bury_until(child: int) -> int:
    """Wait for every process that ends, as process 1 has to, until the child does; returns its exit status."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


def command(order: Path, result: Path) -> list[str]:
    """The command line that starts this file in a world of its own; without root where users may have namespaces."""
    apart = ["--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc", "--propagation=private"]
    root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *root, *apart, sys.executable, "-m", "tests.faults.inside", str(order), str(result)]


def possible() -> str | None:
    """None where such a world can be made, else the reason."""
    try:
        done = subprocess.run(["unshare", *command(Path(), Path())[1:-5], "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return "there is no program `unshare`"
    return None if done.returncode == 0 else done.stderr.decode(errors="replace").strip()


def main(order: Path, result: Path) -> int:
    """Make the world, do the cell in a child, bury the dead."""
    hide()
    loopback_up()
    child = os.fork()
    if child:
        return bury_until(child)
    asked = json.loads(order.read_text())
    if asked["fault"] is None:
        told = dry_run(asked, mount_tmpfs)
    elif asked["fault"] == "race":
        told = race()
    elif asked["fault"] == "pair":
        told = pair(asked)
    else:
        told = carry_out(asked, mount_tmpfs)
    result.write_text(json.dumps(told))
    return 0


if __name__ == "__main__":
    code = main(Path(sys.argv[1]), Path(sys.argv[2]))
    sys.stdout.flush()
    os._exit(code)
