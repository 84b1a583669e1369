"""What a killed lab left behind: found by name, and removed before the next one starts."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from tests.lab.harness import cgroups
from tests.lab.harness.network import bridge_down


def remove_leftovers(hosts: Path) -> None:
    """End the hosts and undo the mounts that lie below the folder `hosts`, and remove the bridge and the folder.

    Only a systemd-nspawn of a folder below `hosts` is ended, with what runs in it. Call it holding the lab's lock: the
    hosts of a living lab look the same.
    """
    for pid in nspawns(hosts):
        for each in (*descendants(pid), pid):
            _kill(each)
    deadline = time.monotonic() + 10
    while nspawns(hosts) and time.monotonic() < deadline:
        time.sleep(0.05)
    for mount in reversed(mounts(hosts)):
        subprocess.run(["umount", "--lazy", mount], check=False, capture_output=True)
    bridge_down()
    cgroups.removed()
    subprocess.run(["rm", "-rf", "--one-file-system", str(hosts)], check=True)


def nspawns(hosts: Path) -> list[int]:
    """Return the process ids of the nspawns that run a host below this folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if Path(words[0]).name == "systemd-nspawn" and any(word.startswith(f"--directory={hosts}/") for word in words):
            found.append(int(entry.name))
    return found


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on, the deepest last; none if it is gone."""
    found: list[int] = []
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(word) for task in tasks for word in (task / "children").read_text().split()]
    except OSError:
        return found
    for child in children:
        found += [child, *descendants(child)]
    return found


def mounts(hosts: Path) -> list[str]:
    """Return the mount points below the folder, in the order in which they were mounted."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    return [point for point in points if point.startswith(f"{hosts}/")]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
