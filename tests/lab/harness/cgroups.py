"""A control group per host: without it, hosts started side by side would share one tree, and each other's services."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from tests.lab.harness.paths import NUMBER

PREFIX = f"changectl-lab{NUMBER}-"
#: Joins the groups given before `--`, then becomes the command after it.
JOIN = 'while [ "$1" != -- ]; do echo $$ > "$1/cgroup.procs" || exit 1; shift; done; shift; exec "$@"'


def made(host: str) -> list[Path]:
    """Make the host's groups, one in each hierarchy that systemd uses, and return them."""
    groups = [hierarchy / f"{PREFIX}{host}" for hierarchy in hierarchies()]
    for group in groups:
        group.mkdir(exist_ok=True)
    return groups


def removed() -> None:
    """Remove the groups of all hosts; those still in use stay."""
    for hierarchy in hierarchies():
        for group in hierarchy.glob(f"{PREFIX}*"):
            _remove(group)


def hierarchies() -> list[Path]:
    """Return the mount points of cgroup version 2 and of systemd's own hierarchy of version 1."""
    found = []
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options.split(",")):
            found.append(Path(left.split()[4]))
    return found


def _remove(group: Path) -> None:
    for folder in sorted(group.rglob("*"), key=lambda path: len(path.parts), reverse=True):
        if folder.is_dir():
            _rmdir(folder)
    _rmdir(group)


def _rmdir(folder: Path) -> None:
    # A group stays busy for an instant after the last of its processes was killed.
    for _ in range(20):
        with contextlib.suppress(FileNotFoundError, OSError):
            folder.rmdir()
        if not folder.exists():
            return
        time.sleep(0.02)
