"""What this host has to offer for changes: folders, attributes, systemd. What is tried is taken away again at once."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Callable, Dict, List, Optional

from . import commands, doctor_folder, locks, procfs, systemd
from .failure import Failure, from_os_error
from .keeper import running
from .state import Run

Record = Dict[str, Any]
_TRANSIENT = 20.0  # seconds that a unit which does nothing gets to end


def doctor(args: Record) -> Record:
    """The call: {folders, temporary, selinux, systemd, keeper}.

    Args:
        args: `state_dir`; `run`: whose keeper is asked for; `only`: names of the parts that are wanted, None: all.

    Raises:
        Failure: `bad_arguments` for a part that does not exist.
    """
    wanted = _PARTS if args.get("only") is None else args["only"]
    unknown = [name for name in wanted if name not in _PARTS]
    if unknown:
        raise Failure("bad_arguments", f"only: there is no part {unknown[0]!r}; there are {', '.join(_PARTS)}")
    return {name: _PARTS[name](args) for name in wanted}


def _folders(args: Record) -> List[Record]:
    """The run's state folder, and the one of the host's lease where that is another."""
    root = args.get("state_dir") or locks.default_root()
    return [doctor_folder.examine(place) for place in dict.fromkeys([root, locks.host_folder()])]


def _temporary(_: Record) -> Record:
    """Where programs put what they need for a moment; nothing of ours is ever started from there."""
    try:
        place = tempfile.gettempdir()
        return {"path": place, "problem": None, **doctor_folder.mounted(place)}
    except OSError as error:
        return {"path": None, "problem": from_os_error(error, "looking for a temporary folder").message}


def _selinux(_: Record) -> Optional[str]:
    """How SELinux is set: enforcing or permissive; None: this kernel does not use it."""
    told = procfs.read_text("/sys/fs/selinux/enforce").strip()
    return {"1": "enforcing", "0": "permissive"}.get(told)


def _systemd(_: Record) -> Optional[Record]:
    """How systemd is, whether we may have units in memory, and the units whose files wait to be read anew.

    None: this host was not booted with it.
    """
    if not os.path.isdir("/run/systemd/system"):
        return None
    found: Record = {"state": None, "failed": [], "reload": None, "transient": None, "problem": None}
    try:
        found["state"] = systemd.systemctl({}, "is-system-running").out.strip() or None
        listed = systemd.systemctl({}, "list-units", "--state=failed", "--plain", "--no-legend").out
        found["failed"] = [line.split()[0] for line in listed.splitlines() if line.split()]
        found["reload"] = _waiting()
        if systemd.owned():
            found["transient"] = _transient()
    except Failure as failure:
        found["problem"] = failure.message
    return found


def _waiting() -> Optional[List[str]]:
    """Loaded units whose files changed since systemd read them; None: it does not say."""
    shown = systemd.systemctl({}, "show", "*", "--property=Id", "--property=NeedDaemonReload")
    units = [dict(line.partition("=")[::2] for line in block.splitlines()) for block in shown.out.split("\n\n")]
    if not any("NeedDaemonReload" in unit for unit in units):
        return None
    return sorted({unit["Id"] for unit in units if unit.get("NeedDaemonReload") == "yes" and unit.get("Id")})


def _transient() -> str:
    """Start a unit in memory that does nothing; empty: it ran, else what was said."""
    unit = f"changectl-doctor-{os.urandom(4).hex()}.service"
    argv = ["systemd-run", "--quiet", "--collect", "--wait", f"--unit={unit}", "--", "true"]
    try:
        done = commands.run(argv, timeout=_TRANSIENT)
    except Failure as failure:
        if failure.reason == "timed_out":
            systemd.systemctl({}, "stop", "--no-block", unit)
        return failure.message
    return "" if done.status == 0 else (done.err.strip() or f"exit status {done.status}")[-500:]


def _keeper(args: Record) -> Optional[Record]:
    """Who keeps watch over a run: {pid, kind, executable}; None where nobody does."""
    if args.get("run") is None:
        return None
    found = running(Run.of(args))
    if not found:
        return None
    words = procfs.argv(found["pid"])
    return {"pid": found["pid"], "kind": found["kind"], "executable": words[0] if words else None}


_PARTS: Dict[str, Callable[[Record], Any]] = {
    "folders": _folders,
    "temporary": _temporary,
    "selinux": _selinux,
    "systemd": _systemd,
    "keeper": _keeper,
}
