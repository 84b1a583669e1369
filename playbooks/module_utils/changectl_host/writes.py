"""The calls that change configuration files: stage, write, cleanup, forget; the way back is in restoring.py."""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shutil
from typing import Any, Callable, Dict, Iterator, List, Tuple

from . import create, facts, records, snapshot, swap, system
from .acting import mutating
from .failure import Failure, from_os_error
from .state import Run


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
    """Several files of one change, each compared before the first is touched: {changed, writes: [...]}.

    Raises:
        Failure: as `write`; `written` in the details says whether a file holds, or may hold, new bytes. Where it is
            missing (the lock, the generation) nothing is known of what an earlier call of the run did.
    """
    with mutating(args) as run:
        wanted = [dict(item) for item in args.get("writes") or []]
        answers: List[Dict[str, Any]] = []
        try:
            for item in wanted:
                _check_expectation(item)
            answers.extend({"path": item.get("path"), **_write(run, item)} for item in wanted)
        except Failure as failure:
            failure.details["written"] = bool(answers) or bool(failure.details.get("written"))
            raise
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
    try:
        method = recorded(run, "write", path, resolved, lambda: _apply(run, "write", resolved, (expect, staged), args))
    except Failure as failure:
        # Also what failed late (a folder that cannot be put on disk) has written.
        failure.details.setdefault("written", _holds(resolved, staged))
        raise
    after = _digest(resolved)
    if after != staged:
        # A word of its own: here our bytes were in force, however shortly, and the service may have read them.
        message = f"{path} was changed by somebody else right after it was written"
        raise Failure("overwritten", message, found=after, written=True)
    return {"changed": True, "sha256": after, "method": method}


def _apply(run: Run, event: str, resolved: str, change: Tuple[str, str], args: Dict[str, Any]) -> str:
    expect, staged = change

    def accept(data: bytes) -> bool:
        return system.sha256(data) == expect

    if staged == "absent":
        return create.remove(run, event, resolved, accept)
    data = snapshot.staged(run, staged)
    snapshot.save_blob(run, data)  # the way back has to know our own bytes when the staged ones are gone
    if expect == "absent":
        return create.create(run, event, resolved, data, args)
    return swap.replace(run, event, resolved, accept, data, None)


def _holds(resolved: str, staged: str) -> bool:
    """Whether our bytes stand there; a file that cannot be read may hold them."""
    try:
        return _digest(resolved) == staged
    except (Failure, OSError):
        return True


def recorded(run: Run, event: str, path: str, resolved: str, act: Callable[[], str]) -> str:
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


def cleanup(args: Dict[str, Any]) -> Dict[str, Any]:
    """Remove staged bytes and what killed calls left behind; the snapshot and the record stay: {removed: [...]}."""
    with mutating(args, without_lease=True) as run:
        removed, kept = _left_behind(run)
        for place in removed:
            os.unlink(place)
        _require_none(kept)
        for name in ("staged", "swap", "scratch", "generators"):
            if os.path.isdir(run.path(name)):
                shutil.rmtree(run.path(name), ignore_errors=True)
                removed.append(run.path(name))
        return {"removed": removed, "changed": bool(removed)}


def left_behind(run: Run) -> Iterator[Tuple[Dict[str, Any], str]]:
    """What killed calls left of their prepared files: the event that tells of it, and where it lies."""
    for event in run.events():
        for given in event.get("temporaries", []):
            yield from ((event, place) for place in (given, f"{given}.displaced") if os.path.lexists(place))


def _left_behind(run: Run) -> Tuple[List[str], List[str]]:
    """The same, apart: what is ours to remove, and what is somebody else's."""
    ours: List[str] = []
    others: List[str] = []
    for event, place in left_behind(run):
        (ours if is_ours(run, event, place) else others).append(place)
    return ours, others


def _require_none(others: List[str]) -> None:
    if others:
        message = f"files of somebody else were displaced by a killed call and lie in {', '.join(others)}"
        raise Failure("displaced", message, kept=others)


def is_ours(run: Run, event: Dict[str, Any], place: str) -> bool:
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
    """Remove the run's folder with its snapshot, and with those of its instances in it: {removed: [...]}.

    Raises:
        Failure: `stale_generation`: somebody took the run over, and its snapshot is their way back; `armed`: it is the
            dead-man's, or one in it is; `displaced`: only this folder tells where somebody else's file lies.
    """
    existed = os.path.isdir(Run.of(args).folder)
    with mutating(args, without_lease=True) as run:
        for one in [run] if run.instance else run.folders():
            if records.armed(one) is not None:
                raise Failure("armed", f"run {one.name} is armed: its folder is the way back")
            _require_none(_left_behind(one)[1])
        shutil.rmtree(run.folder)
        if run.instance:
            with contextlib.suppress(OSError):  # another instance has its folder there
                os.rmdir(os.path.dirname(run.folder))
        return {"removed": [run.folder] if existed else [], "changed": existed}
