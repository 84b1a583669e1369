"""The unit that brings saved files back at boot, before the service starts; it never starts anything.

It is written and enabled by plain files alone: telling systemd to read its files anew would put into force what
somebody else has edited and not loaded yet. It reads this one at the next boot, which is the only time it is for.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Any, Dict, List, Optional

from . import keeper, locks, procfs, system, systemd
from .failure import Failure
from .state import Run

NAME = "changectl-boot.service"
FOLDER = "/etc/systemd/system"
_STEM = NAME[: -len(".service")]
_MARK = "# run: "
_NOT_HERE = (errno.EROFS, errno.EACCES, errno.EPERM)


def install(run: Run, armed: Dict[str, Any], resolved: List[str], folder: str = FOLDER) -> str:
    """Write and enable the unit; returns "" or why the saved files do not come back at a restart of this host.

    Args:
        run: the armed run.
        armed: its armed record; a manager by systemd names the unit that has to wait.
        resolved: the files that come back.
        folder: where systemd's own units lie.

    Raises:
        OSError: the disk is full or broken.
    """
    if _in_memory(run.folder):
        return f"{run.folder} lies in memory and is gone after a restart of this host"
    try:
        content = text(run, armed, resolved)
        wants = os.path.join(folder, "sysinit.target.wants")
        os.makedirs(wants, mode=0o755, exist_ok=True)
        unit = name(run)
        _write(os.path.join(folder, unit), content.encode())
        link = os.path.join(wants, unit)
        if not os.path.lexists(link):
            os.symlink(f"../{unit}", link)
            system.sync_directory(wants)
    except Failure as failure:
        return failure.message
    except OSError as error:
        if error.errno not in _NOT_HERE:
            raise
        return f"no unit can be written to {folder}: {error.strerror}"
    return ""


def _write(path: str, data: bytes) -> None:
    system.save(path, data)
    os.chmod(path, 0o644)  # as all units; there is no secret in it


def remove(run: Run, folder: str = FOLDER) -> bool:
    """Take the unit away if it is this run's; whether it was there."""
    unit = name(run)
    path = os.path.join(folder, unit)
    if owner(folder, unit) != _owner(run):
        return False
    for place in (os.path.join(folder, "sysinit.target.wants", unit), path):
        if os.path.lexists(place):
            os.unlink(place)
            system.sync_directory(os.path.dirname(place))
    return True


def name(run: Run) -> str:
    """The unit's name: one for the host, one for each instance that shares it, and one for each upstream.

    What is armed at the same time on one host has a unit of its own: it waits for another service, and goes alone.
    """
    above, key = os.path.split(os.path.abspath(locks.host_folder()))
    stem = f"{_STEM}-{key}" if os.path.basename(above) == locks.UPSTREAMS else _STEM
    return f"{stem}.{run.instance}.service" if run.instance else f"{stem}.service"


def all_names(folder: str = FOLDER) -> List[str]:
    """The names of all such units that are there."""
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(one for one in found if one.startswith((f"{_STEM}-", f"{_STEM}.")) and one.endswith(".service"))


def owner(folder: str = FOLDER, unit: str = NAME) -> Optional[str]:
    """The run and state folder that a unit is for, as its first line tells; None: there is no such unit."""
    first = procfs.read_text(os.path.join(folder, unit)).split("\n")[0]
    return first[len(_MARK) :] if first.startswith(_MARK) else None


def _owner(run: Run) -> str:
    return f"{run.name} in {run.root}"


def text(run: Run, armed: Dict[str, Any], resolved: List[str]) -> str:
    """The unit's text.

    Raises:
        Failure: `bad_arguments` for a path with a line break, which no unit can hold.
    """
    places = [run.root, sys.executable, os.path.realpath(sys.executable), *map(os.path.dirname, resolved)]
    mounts = " ".join(quoted(place) for place in dict.fromkeys(places))
    managed = (armed.get("manager") or {}).get("systemd") or {}
    before = ["multi-user.target", "shutdown.target"]
    if managed.get("unit") and not managed.get("user_manager"):
        before.insert(0, systemd.check_unit(managed["unit"]).replace("%", "%%"))
    words = " ".join(quoted(word.replace("$", "$$")) for word in keeper.words(run, "boot"))
    variables = "".join(
        f"Environment={quoted(f'{name}={value}')}\n" for name, value in keeper.environment().items() if name != "PATH"
    )
    lines = [
        f"{_MARK}{_owner(run)}",
        "[Unit]",
        f"Description=changectl: bring back the saved files of {run.name}",
        "DefaultDependencies=no",
        f"RequiresMountsFor={mounts}",
        "After=local-fs.target systemd-remount-fs.service",
        f"Before={' '.join(before)}",
        "Conflicts=shutdown.target",
        "",
        "[Service]",
        "Type=oneshot",
        f"{variables}ExecStart={words}",
        # A service is not kept from starting for ever by what was meant to help it.
        "TimeoutStartSec=300",
        "",
    ]
    return "\n".join(lines)


def quoted(word: str) -> str:
    """One word as systemd's unit files write it.

    Raises:
        Failure: `bad_arguments`.
    """
    if any(ord(char) < 32 for char in word):
        raise Failure("bad_arguments", f"{word!r} holds a control character, which no unit can hold")
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _in_memory(folder: str) -> bool:
    """Whether a folder lies on a file system that a restart empties."""
    best = ("", "")
    for line in procfs.read_text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        point = left.split()[4].encode().decode("unicode_escape")
        if (folder + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
            best = (point, right.split()[0])
    return best[1] in ("tmpfs", "ramfs")
