"""Compare the host as it is now with what a run saved: bytes, owner, mode, extended attributes, link target."""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from . import facts, part, snapshot
from .failure import Failure
from .state import Run


def verify(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {files: {path: {equal, differs, part?}}, equal}.

    `part` is "back" where all that the run changed is as it was saved, and only somebody else's part differs.
    """
    found = compare(Run.of(args))
    return {"files": found, "equal": all(item["equal"] for item in found.values())}


def compare(run: Run, only: Optional[List[str]] = None) -> Dict[str, Dict[str, Any]]:
    """Every saved file of the run, or those that `only` names, against the one on the host.

    Raises:
        Failure: `not_captured`, `damaged_state`.
    """
    saved = snapshot.manifest(run)["files"]
    result = {}
    for path, entry in saved.items():
        if only is not None and path not in only:
            continue
        if entry["exists"]:
            snapshot.blob(run, entry["sha256"])  # proof needs the saved bytes to be whole
        differs = differences(path, entry)
        result[path] = {"equal": not differs, "differs": differs}
        if differs and entry["exists"] and _part_is_back(run, path, entry):
            result[path]["part"] = part.BACK
    return result


def _part_is_back(run: Run, path: str, entry: Dict[str, Any]) -> bool:
    """Whether all that this run changed in a file is as it was saved, and only the rest is somebody else's."""
    new = part.once_written(run, entry["resolved"])
    if new is None or os.path.realpath(path) != entry["resolved"]:
        return False
    try:
        with facts.opened(entry["resolved"]) as file:
            return part.standing(snapshot.blob(run, entry["sha256"]), new, file.data) == part.BACK
    except Failure:
        return False


def differences(path: str, entry: Dict[str, Any]) -> List[str]:
    """The words for what differs: existence, link, bytes, owner, mode, xattrs."""
    resolved = os.path.realpath(path)
    if facts.stat_or_none(resolved) is None:
        return ["existence"] if entry["exists"] else []
    if not entry["exists"]:
        return ["existence"]
    differs = [] if resolved == entry["resolved"] else ["link"]
    try:
        with facts.opened(resolved) as file:
            now = facts.metadata(file)
    except Failure as failure:
        return [*differs, failure.reason]
    if now["sha256"] != entry["sha256"]:
        differs.append("bytes")
    if (now["uid"], now["gid"]) != (entry["uid"], entry["gid"]):
        differs.append("owner")
    if now["mode"] != entry["mode"]:
        differs.append("mode")
    if now["xattrs"] != entry["xattrs"]:
        differs.append("xattrs")
    return differs
