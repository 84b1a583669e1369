"""Save everything before a change, and prove on this host that it can be brought back."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import Any, Dict, Iterator, List

from . import command, facts, gpu, manager, process, program, snapshot, swap, system
from .acting import mutating
from .failure import Failure, from_os_error
from .state import Run, save_json

Problems = List[Dict[str, str]]


def capture(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {files: {path: facts}, restorable, problems, digest, process}.

    Raises:
        Failure: `already_captured` when the run holds another snapshot: it is never overwritten.
    """
    paths = _paths(args.get("files"))
    with mutating(args) as run:
        earlier = snapshot.manifest_or_none(run)
        files = {path: _save(run, path) for path in paths}
        if earlier is not None and earlier["files"] != files:
            message = f"run {run.name} has a snapshot of another state; it is not overwritten"
            raise Failure("already_captured", message)
        run.record("capture.intent", files=paths)
        running = _save_process(run, args)
        gpu.keep_bindings(run, args.get("nvml"))
        problems = [*prove(run, files), *_not_startable(args, running)]
        content = {"files": files, "manager": args.get("manager"), "extra": args.get("extra") or {}}
        digest = snapshot.save_manifest(run, content)
        system.save(run.path("program.pyz"), program.program_zip())
        run.record("capture.outcome", digest=digest, restorable=not problems)
        shown = {path: {key: value for key, value in entry.items() if key != "xattrs"} for path, entry in files.items()}
        return {"files": shown, "restorable": not problems, "problems": problems, "digest": digest, "process": running,
                "folder": run.folder, "changed": earlier is None}  # fmt: skip


def _paths(value: Any) -> List[str]:
    if not isinstance(value, list) or not all(isinstance(path, str) for path in value):
        raise Failure("bad_arguments", "files must be a list of absolute paths")
    return list(dict.fromkeys(value))


def _save(run: Run, path: str) -> Dict[str, Any]:
    resolved = facts.resolve(path)
    if facts.stat_or_none(resolved) is None:
        return {"exists": False, "resolved": resolved}
    with facts.opened(resolved) as file:
        snapshot.save_blob(run, file.data)
        return {"exists": True, **facts.metadata(file)}


def _save_process(run: Run, args: Dict[str, Any]) -> Any:
    """Keep the running process's facts on this host; the answer leaves the environment out, which may hold secrets."""
    if not args.get("process"):
        return None
    found = process.describe(manager.main_pid(args.get("manager")))
    path = run.path("snapshot", "process.json")
    if found is None or os.path.exists(path):
        return None if found is None else {key: value for key, value in found.items() if key != "environ"}
    run.make("snapshot")
    save_json(path, found)
    return {key: value for key, value in found.items() if key != "environ"}


def _not_startable(args: Dict[str, Any], running: Any) -> Problems:
    """A service that only root could start again must not be stopped by anybody else."""
    if running is None or args.get("manager") is None:
        return []
    name, settings = manager.read(args["manager"])
    if name != "command":
        return []
    try:
        command.require_user(settings, running)
    except Failure as failure:
        return [{"path": settings["start"][0], "problem": failure.message, "reason": failure.reason}]
    return []


def prove(run: Run, files: Dict[str, Dict[str, Any]]) -> Problems:
    """Restore every saved file to a scratch place and compare; returns what stands in the way of a real restore."""
    problems: Problems = []
    for path, entry in files.items():
        if not entry["exists"]:
            continue
        try:
            with facts.opened(entry["resolved"]) as file:
                swap.check_replaceable(file)
            _scratch_restore(run, entry)
        except (Failure, OSError) as error:
            failure = error if isinstance(error, Failure) else from_os_error(error, f"scratch restore of {path}")
            problems.append({"path": path, "problem": failure.message, "reason": failure.reason})
    return problems


def _scratch_restore(run: Run, entry: Dict[str, Any]) -> None:
    wanted = saved_metadata(entry)
    with _scratch_folder(run, entry["resolved"]) as folder:
        place = os.path.join(folder, "scratch")
        with swap.temporary_file(place, snapshot.blob(run, entry["sha256"]), wanted), facts.opened(place) as back:
            if back.sha256 != entry["sha256"] or swap.Metadata.of(back) != wanted:
                raise Failure("not_restorable", f"{entry['resolved']}: the scratch copy is not equal to the original")


def saved_metadata(entry: Dict[str, Any]) -> swap.Metadata:
    """Owner, mode and extended attributes of a saved file."""
    return swap.Metadata(entry["uid"], entry["gid"], entry["mode"], facts.decode_xattrs(entry["xattrs"]))


@contextlib.contextmanager
def _scratch_folder(run: Run, resolved: str) -> Iterator[str]:
    """A folder on the file system of the original: in our own state if it lies there, else at its mount's root.

    Never in the configuration's own folder, which services may scan.
    """
    own = run.make("scratch")
    home = os.path.dirname(resolved)
    device = os.stat(home).st_dev
    base = own
    if os.stat(own).st_dev != device:
        root = home
        while root != "/" and os.stat(os.path.dirname(root)).st_dev == device:
            root = os.path.dirname(root)
        if root != home:
            base = root
    folder = tempfile.mkdtemp(prefix=".changectl-scratch-", dir=base)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
