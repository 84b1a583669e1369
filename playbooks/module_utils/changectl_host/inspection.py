"""The three values' first two: files and running process, as they are now."""

from __future__ import annotations

from typing import Any, Dict, Iterable, Optional, Tuple

from . import facts, manager, process, procfs
from .failure import Failure


def inspect(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {manager, process, files, port_owner?}.

    A file that cannot be looked at is reported as {error, reason} beside the others.
    """
    described: Dict[str, Any] = {}
    pid: Optional[int] = args.get("pid")
    if args.get("manager") is not None:
        described = manager.describe(args["manager"])
        pid = pid or manager.main_pid(args["manager"])
    running = process.describe(pid)
    reader = service_user(described, running)
    paths = [*(args.get("files") or []), *manager.configuration_files(described)]
    found = {
        "manager": described,
        "process": running,
        "files": {path: _file(path, reader) for path in dict.fromkeys(paths)},
    }
    if args.get("port") is not None:
        owner = procfs.port_owner(int(args["port"]))
        found["port_owner"] = None if owner is None else procfs.brief(owner)
    return found


def _file(path: str, reader: Optional[Tuple[int, Iterable[int]]]) -> Dict[str, Any]:
    try:
        return facts.describe(path, reader)
    except Failure as failure:
        return {"exists": None, "error": failure.message, "reason": failure.reason}


def service_user(described: Dict[str, Any], running: Optional[Dict[str, Any]]) -> Optional[Tuple[int, Iterable[int]]]:
    """User id and group ids of the service: as it runs, else as its unit says; None: not known."""
    if running is not None and running["uid"] is not None:
        return running["uid"], running["gids"]
    name = described.get("show", {}).get("User")
    return facts.ids_of(name) if name else None
