"""The way back of files: what was saved is put where this run wrote, and never over somebody else's edit."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Optional

from . import capture, create, facts, inplace, snapshot, swap, system, writes
from .acting import mutating
from .failure import Failure
from .state import Run


def restore(args: Dict[str, Any]) -> Dict[str, Any]:
    """Bring saved files back: {files: {path: "restored" | "already" | "removed"}, changed}.

    Raises:
        Failure: `changed_by_other` when a file holds neither the saved nor this run's bytes (all others are restored
            first; `files` in the details says which).
    """
    with mutating(args) as run:
        saved = snapshot.manifest(run)["files"]
        done = _each(chosen(run, saved, args), lambda path: _restore(run, path, saved[path]))
        return {"files": done, "changed": any(word != "already" for word in done.values())}


def require_restorable(args: Dict[str, Any]) -> None:
    """Look at every file before the service is stopped for its sake; changes nothing.

    Raises:
        Failure: what `restore` would say, as far as can be told beforehand.
    """
    with mutating(args) as run:
        saved = snapshot.manifest(run)["files"]
        _each(chosen(run, saved, args), lambda path: _check(run, path, saved[path]))


def chosen(run: Run, saved: Dict[str, Any], args: Dict[str, Any]) -> List[str]:
    """The paths that `only` names, else all that were saved.

    Raises:
        Failure: `not_captured` for a path that is not in the snapshot.
    """
    only = args.get("only")
    unknown = set(only or []) - set(saved)
    if unknown:
        raise Failure("not_captured", f"not in the snapshot of run {run.name}: {', '.join(sorted(unknown))}")
    return list(saved if only is None else only)


def _each(paths: List[str], act: Callable[[str], str]) -> Dict[str, str]:
    """Do it for every path; the first failure is raised when all had their turn, with what became of each."""
    done: Dict[str, str] = {}
    first: Optional[Failure] = None
    for path in paths:
        try:
            done[path] = act(path)
        except Failure as failure:
            done[path] = failure.reason
            first = first or failure
    if first is not None:
        first.details["files"] = done
        raise first
    return done


def _check(run: Run, path: str, entry: Dict[str, Any]) -> str:
    resolved = _same_place(path, entry)
    known = snapshot.written(run, resolved)
    if entry["exists"]:
        snapshot.blob(run, entry["sha256"])
        known.add(entry["sha256"])
    if facts.stat_or_none(resolved) is None:
        if entry["exists"] and "absent" not in known:
            raise swap.changed_by_other(resolved, "absent")
        swap.check_writable_place(resolved)
        return "absent"
    with facts.opened(resolved) as file:
        if (
            entry["exists"]
            and file.sha256 == entry["sha256"]
            and swap.Metadata.of(file) == capture.saved_metadata(entry)
        ):
            return "already"
        swap.check_replaceable(file)
        if file.sha256 not in known and not (entry["exists"] and _torn_by_us(run, resolved, file.data)):
            raise swap.changed_by_other(resolved, file.sha256)
    return "restorable"


def _same_place(path: str, entry: Dict[str, Any]) -> str:
    resolved = facts.resolve(path)
    if resolved != entry["resolved"]:
        message = f"{path} led to {entry['resolved']} when it was saved and leads to {resolved} now"
        raise Failure("changed_by_other", message, found=resolved)
    return resolved


def _restore(run: Run, path: str, entry: Dict[str, Any]) -> str:
    resolved = _same_place(path, entry)
    if not entry["exists"]:
        return _restore_absence(run, path, resolved)
    data = snapshot.blob(run, entry["sha256"])
    known = snapshot.written(run, resolved) | {entry["sha256"]}
    if facts.stat_or_none(resolved) is None:
        if "absent" not in known:
            raise swap.changed_by_other(resolved, "absent")
        writes.recorded(run, "restore", path, resolved, lambda: create.create(run, "restore", resolved, data, entry))
    with facts.opened(resolved) as file:
        if file.sha256 == entry["sha256"] and swap.Metadata.of(file) == capture.saved_metadata(entry):
            return "already"

    def accept(present: bytes) -> bool:
        return system.sha256(present) in known or _torn_by_us(run, resolved, present)

    wanted = capture.saved_metadata(entry)
    writes.recorded(
        run, "restore", path, resolved, lambda: swap.replace(run, "restore", resolved, accept, data, wanted)
    )
    return "restored"


def _restore_absence(run: Run, path: str, resolved: str) -> str:
    if facts.stat_or_none(resolved) is None:
        return "already"
    known = snapshot.written(run, resolved)
    writes.recorded(run, "restore", path, resolved,
              lambda: create.remove(run, "restore", resolved, lambda data: system.sha256(data) in known))  # fmt: skip
    return "removed"


def _torn_by_us(run: Run, resolved: str, present: bytes) -> bool:
    """Whether a kill in the middle of our own in-place write explains the bytes."""
    contents = []
    for digest in snapshot.torn_pairs(run, resolved):
        for source in (snapshot.staged, snapshot.blob):
            with contextlib.suppress(Failure):
                contents.append(source(run, digest))
                break
    return any(inplace.is_torn(present, old, new) for old in contents for new in contents if old != new)
