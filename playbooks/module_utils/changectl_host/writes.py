"""The calls that change configuration files: stage, write, restore, cleanup, forget."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shutil
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import capture, create, facts, inplace, snapshot, swap, system
from .failure import Failure, from_os_error
from .state import Run, host_lock, mutating


def stage(args: Dict[str, Any]) -> Dict[str, Any]:
    """Bring new bytes to the host, named by their digest: {path, changed}."""
    digest = snapshot.check_digest(args.get("sha256"))
    try:
        data = base64.b64decode(args.get("content") or "", validate=True)
    except (binascii.Error, TypeError, ValueError):
        raise Failure("bad_arguments", "content must be base64") from None
    if system.sha256(data) != digest:
        raise Failure("bad_arguments", "the content does not have the digest that names it")
    with mutating(args) as run:
        path = os.path.join(run.make("staged"), digest)
        changed = not os.path.exists(path)
        try:
            system.save(path, data)
        except OSError as error:
            raise from_os_error(error, f"staging {path}") from error
        return {"path": path, "changed": changed}


def write(args: Dict[str, Any]) -> Dict[str, Any]:
    """Replace one file, if it is what the caller thinks: {changed, sha256, method}.

    Raises:
        Failure: see `swap.replace`; `not_captured` when the run could not bring the old bytes back.
    """
    with mutating(args) as run:
        return _write(run, args)


def write_all(args: Dict[str, Any]) -> Dict[str, Any]:
    """Several files of one change, each compared before the first is touched: {changed, writes: [...]}."""
    with mutating(args) as run:
        wanted = [dict(item) for item in args.get("writes") or []]
        for item in wanted:
            _check_expectation(item)
        answers = [{"path": item.get("path"), **_write(run, item)} for item in wanted]
        return {"changed": any(answer["changed"] for answer in answers), "writes": answers}


def _check_expectation(args: Dict[str, Any]) -> None:
    resolved = facts.resolve(args.get("path", ""))
    present = _digest(resolved)
    if present not in (args.get("expect"), args.get("staged")):
        raise swap.changed_by_other(resolved, present)


def _write(run: Run, args: Dict[str, Any]) -> Dict[str, Any]:
    expect, staged = (_digest_or_absent(args.get(key)) for key in ("expect", "staged"))
    path = args.get("path", "")
    resolved = facts.resolve(path)
    saved = snapshot.manifest(run)["files"]
    if path not in saved or saved[path]["resolved"] != resolved:
        raise Failure("not_captured", f"{path} is not in the snapshot of run {run.name}: it could not be restored")
    present = _digest(resolved)
    if present == staged:
        return {"changed": False, "sha256": present, "method": "none"}
    if present != expect:
        raise swap.changed_by_other(resolved, present)
    method = _recorded(run, "write", path, resolved, lambda: _apply(run, "write", resolved, (expect, staged), args))
    after = _digest(resolved)
    if after != staged:
        raise Failure(
            "changed_by_other", f"{path} was changed by somebody else right after it was written", found=after
        )
    return {"changed": True, "sha256": after, "method": method}


def _apply(run: Run, event: str, resolved: str, change: Tuple[str, str], args: Dict[str, Any]) -> str:
    expect, staged = change

    def accept(data: bytes) -> bool:
        return system.sha256(data) == expect

    if staged == "absent":
        return create.remove(run, event, resolved, accept)
    data = snapshot.staged(run, staged)
    if expect == "absent":
        return create.create(run, event, resolved, data, args)
    return swap.replace(run, event, resolved, accept, data, None)


def _recorded(run: Run, event: str, path: str, resolved: str, act: Callable[[], str]) -> str:
    """Record how an act ended, whatever happens."""
    try:
        method = act()
    except (Failure, OSError) as error:
        failure = error if isinstance(error, Failure) else from_os_error(error, f"writing {path}")
        run.record(f"{event}.failed", path=path, resolved=resolved, reason=failure.reason)
        raise failure from error
    run.record(f"{event}.outcome", path=path, resolved=resolved, method=method)
    return method


def _digest(resolved: str) -> str:
    if facts.stat_or_none(resolved) is None:
        return "absent"
    with facts.opened(resolved) as file:
        return file.sha256


def _digest_or_absent(value: Any) -> str:
    return "absent" if value == "absent" else snapshot.check_digest(value)


def restore(args: Dict[str, Any]) -> Dict[str, Any]:
    """Bring saved files back: {files: {path: "restored" | "already" | "removed"}, changed}.

    Raises:
        Failure: `changed_by_other` when a file holds neither the saved nor this run's bytes (all others are restored
            first; `files` in the details says which).
    """
    with mutating(args) as run:
        saved = snapshot.manifest(run)["files"]
        only = args.get("only")
        unknown = set(only or []) - set(saved)
        if unknown:
            raise Failure("not_captured", f"not in the snapshot of run {run.name}: {', '.join(sorted(unknown))}")
        done: Dict[str, str] = {}
        first: Optional[Failure] = None
        for path in saved if only is None else only:
            try:
                done[path] = _restore(run, path, saved[path])
            except Failure as failure:
                done[path] = failure.reason
                first = first or failure
        if first is not None:
            first.details["files"] = done
            raise first
        return {"files": done, "changed": any(word != "already" for word in done.values())}


def _restore(run: Run, path: str, entry: Dict[str, Any]) -> str:
    resolved = facts.resolve(path)
    if resolved != entry["resolved"]:
        message = f"{path} led to {entry['resolved']} when it was saved and leads to {resolved} now"
        raise Failure("changed_by_other", message, found=resolved)
    if not entry["exists"]:
        return _restore_absence(run, path, resolved)
    data = snapshot.blob(run, entry["sha256"])
    known = snapshot.written(run, resolved) | {entry["sha256"]}
    if facts.stat_or_none(resolved) is None:
        if "absent" not in known:
            raise swap.changed_by_other(resolved, "absent")
        _recorded(run, "restore", path, resolved, lambda: create.create(run, "restore", resolved, data, entry))
    with facts.opened(resolved) as file:
        if file.sha256 == entry["sha256"] and swap.Metadata.of(file) == capture.saved_metadata(entry):
            return "already"

    def accept(present: bytes) -> bool:
        return system.sha256(present) in known or _torn_by_us(run, resolved, present)

    wanted = capture.saved_metadata(entry)
    _recorded(run, "restore", path, resolved, lambda: swap.replace(run, "restore", resolved, accept, data, wanted))
    return "restored"


def _restore_absence(run: Run, path: str, resolved: str) -> str:
    if facts.stat_or_none(resolved) is None:
        return "already"
    known = snapshot.written(run, resolved)
    _recorded(run, "restore", path, resolved,
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


def cleanup(args: Dict[str, Any]) -> Dict[str, Any]:
    """Remove staged bytes and what killed calls left behind; the snapshot and the record stay: {removed: [...]}."""
    with mutating(args) as run:
        removed: List[str] = []
        kept: List[str] = []
        for event in run.events():
            for place in event.get("temporaries", []):
                if os.path.lexists(place):
                    (removed if _ours(run, event, place) else kept).append(place)
        for place in removed:
            os.unlink(place)
        if kept:
            message = f"files of somebody else were displaced by a killed call and lie in {', '.join(kept)}"
            raise Failure("displaced", message, kept=kept)
        for name in ("staged", "swap", "scratch", "generators"):
            if os.path.isdir(run.path(name)):
                shutil.rmtree(run.path(name), ignore_errors=True)
                removed.append(run.path(name))
        return {"removed": removed, "changed": bool(removed)}


def _ours(run: Run, event: Dict[str, Any], place: str) -> bool:
    """Whether a leftover holds what we put there: the old bytes, the new ones, or their beginning."""
    with facts.opened(place) as file:
        if file.sha256 in (event.get("before"), event.get("sha256")):
            return True
        for source in (snapshot.staged, snapshot.blob):
            with contextlib.suppress(Failure):
                if source(run, str(event.get("sha256"))).startswith(file.data):
                    return True
    return False


def forget(args: Dict[str, Any]) -> Dict[str, Any]:
    """Remove the run's folder with its snapshot: {removed: [...]}."""
    run = Run.of(args)
    with host_lock(run.root):
        existed = os.path.isdir(run.folder)
        if existed:
            shutil.rmtree(run.folder)
        return {"removed": [run.folder] if existed else [], "changed": existed}
