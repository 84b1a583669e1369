"""The way back of files: what was saved is put where this run wrote, and never over somebody else's edit.

Where somebody else has changed other lines since, only the lines that the run changed go back.
"""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, List, Optional

from . import capture, create, facts, inplace, part, snapshot, swap, system, writes
from .acting import mutating
from .failure import Failure
from .state import Run


def restore(args: Dict[str, Any]) -> Dict[str, Any]:
    """Bring saved files back: {files: {path: word}, changed}.

    The words: "restored", "removed", "already"; and "part_restored" or "part_already" where somebody else has changed
    the rest of the file, so that only what this run changed in it goes back.

    Raises:
        Failure: `changed_by_other` when somebody else changed the very part that this run wrote (all other files are
            restored first; `files` in the details says which).
    """
    with mutating(args) as run:
        saved = snapshot.manifest(run)["files"]
        done = _each(chosen(run, saved, args), lambda path: _restore(run, path, saved[path]))
        return {"files": done, "changed": not {*done.values()} <= {"already", "part_already"}}


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
            raise _gone(run, resolved, entry)
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
        if file.sha256 in known or (entry["exists"] and _torn_by_us(run, resolved, file.data)):
            return "restorable"
        if not entry["exists"]:
            raise swap.changed_by_other(resolved, file.sha256)
        _part(run, resolved, entry, file.data)
    return "part_restorable"


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
            raise _gone(run, resolved, entry)
        writes.recorded(run, "restore", path, resolved, lambda: create.create(run, "restore", resolved, data, entry))
    with facts.opened(resolved) as file:
        if file.sha256 == entry["sha256"] and swap.Metadata.of(file) == capture.saved_metadata(entry):
            return "already"
        found = file.data

    def accept(present: bytes) -> bool:
        return system.sha256(present) in known or _torn_by_us(run, resolved, present)

    if not accept(found):
        return _restore_part(run, path, entry, found)
    wanted = capture.saved_metadata(entry)
    writes.recorded(run, "restore", path, resolved, lambda: _replace(run, resolved, accept, data, wanted))
    return "restored"


def _replace(run: Run, resolved: str, accept: swap.Accept, data: bytes, wanted: swap.Metadata) -> str:
    """Exchanged with a prepared file; in place where the disk is too full for one: better that way than not back."""
    try:
        return swap.replace(run, "restore", resolved, accept, data, wanted)
    except Failure as failure:
        if failure.reason != "disk_full":
            raise
    return swap.replace_in_place(run, "restore", resolved, accept, data, wanted)


def _restore_part(run: Run, path: str, entry: Dict[str, Any], found: bytes) -> str:
    """Somebody else wrote into the file: what is theirs stays, with the owner and mode that they gave it."""
    resolved = entry["resolved"]
    new = _part(run, resolved, entry, found)
    if new is None:
        return "part_already"
    mended = part.put_back(snapshot.blob(run, entry["sha256"]), new, found)
    snapshot.save_blob(run, mended)
    writes.recorded(
        run, "part", path, resolved,
        lambda: swap.replace(run, "part", resolved, lambda present: present == found, mended, None),
    )  # fmt: skip
    return "part_restored"


def _part(run: Run, resolved: str, entry: Dict[str, Any], found: bytes) -> Optional[bytes]:
    """This run's bytes, if its part of them is in force in what was found; None: that part is back already.

    Raises:
        Failure: `changed_by_other` when that part is neither here nor back.
    """
    saved, new = snapshot.blob(run, entry["sha256"]), part.last_written(run, resolved)
    earlier = part.once_written(run, resolved) if new is None else new
    word = part.LOST if earlier is None else part.standing(saved, earlier, found)
    if word == part.LOST or (new is None and word == part.IN_FORCE):
        message = f"{resolved}: somebody else changed the very lines that this run wrote, so nothing is written there"
        raise Failure("changed_by_other", f"{message}; {_by_hand(run, entry)}", found=system.sha256(found))
    return new if word == part.IN_FORCE else None


def _gone(run: Run, resolved: str, entry: Dict[str, Any]) -> Failure:
    message = f"{resolved} is gone: somebody else removed it, so it is not made anew"
    return Failure("changed_by_other", f"{message}; {_by_hand(run, entry)}", found="absent")


def _by_hand(run: Run, entry: Dict[str, Any]) -> str:
    return f"the file as it was saved is {run.path('snapshot', 'files', entry['sha256'])}: put it right by hand"


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
