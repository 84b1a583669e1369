"""The model's manifest: sizes, times, headers, digests, and whether the service can read it."""

from __future__ import annotations

import concurrent.futures
import fnmatch
import functools
import hashlib
import os
import stat
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import facts, gguf, safetensors
from .failure import Failure

_BLOCK = 1024 * 1024
_POINTER = b"version https://git-lfs.github.com/spec/"
Progress = Callable[[Dict[str, Any]], None]


def model(args: Dict[str, Any], progress: Progress, tick: float = 2.0) -> Dict[str, Any]:
    """The call: {files, problems, total_bytes, readable_by, hashed_bytes}.

    Paths of files are relative to the model's folder; a model that is one file has its name alone. With `deep` every
    file gets a digest: read anew, or taken from `known` where size and time are the same. Meanwhile `progress` is told
    every `tick` seconds how many bytes are read.
    """
    root = args.get("path")
    if not isinstance(root, str) or not os.path.isabs(root):
        raise Failure("bad_arguments", "path must be the absolute path of a model file or folder")
    problems: List[Dict[str, str]] = []
    entries = [_entry(full, name, problems) for name, full in _files(root, args.get("exclude") or [], problems)]
    if not entries:
        problems.append({"path": root, "problem": "there is no model file"})
    hashed = _digests(root, entries, args.get("known") or {}, bool(args.get("deep")), (progress, tick), problems)
    return {
        "files": entries,
        "problems": problems,
        "total_bytes": sum(entry["size"] for entry in entries),
        "hashed_bytes": hashed,
        "readable_by": _readable(root, entries, args.get("uid"), args.get("gids") or []),
    }


def _files(root: str, exclude: List[str], problems: List[Dict[str, str]]) -> List[Tuple[str, str]]:
    """Relative name and path of every file, sorted; links are followed, since model caches consist of them."""
    if not os.path.exists(root):
        raise Failure("not_found", f"the model {root} does not exist on this host")
    if not os.path.isdir(root):
        return [(os.path.basename(root), root)]
    found = []
    seen = {os.path.realpath(root)}
    for folder, folders, names in os.walk(root, followlinks=True, onerror=lambda error: _unreadable(error, problems)):
        fresh = []
        for name in sorted(folders):
            real = os.path.realpath(os.path.join(folder, name))
            if real not in seen:  # a link to a folder above would never end
                seen.add(real)
                fresh.append(name)
        folders[:] = fresh
        for name in names:
            full = os.path.join(folder, name)
            relative = os.path.relpath(full, root)
            if not any(fnmatch.fnmatch(relative, pattern) for pattern in exclude):
                found.append((relative, full))
    return sorted(found)


def _unreadable(error: OSError, problems: List[Dict[str, str]]) -> None:
    problems.append({"path": str(error.filename), "problem": f"cannot be read: {error.strerror}"})


def _entry(full: str, name: str, problems: List[Dict[str, str]]) -> Dict[str, Any]:
    entry: Dict[str, Any] = {"path": name, "size": 0, "mtime_ns": 0, "mode": 0, "sha256": None, "header": None}
    try:
        status = os.stat(full)
        entry.update(size=status.st_size, mtime_ns=status.st_mtime_ns, mode=stat.S_IMODE(status.st_mode))
        if not stat.S_ISREG(status.st_mode):
            problems.append({"path": name, "problem": "is not a regular file"})
            return entry
        entry["header"], found, entry["facts"] = _check(full, status.st_size)
        problems += [{"path": name, "problem": text} for text in found]
    except OSError as error:
        word = "is a link that leads nowhere" if os.path.islink(full) and not os.path.exists(full) else error.strerror
        problems.append({"path": name, "problem": str(word)})
    return entry


def _check(full: str, size: int) -> Tuple[Optional[str], List[str], Optional[Dict[str, Any]]]:
    """The kind of file by name or first bytes, what is wrong with it, and its header's own figures."""
    with open(full, "rb") as source:
        begin = source.read(64)
    if begin.startswith(_POINTER):
        return "git-lfs", ["is a git-lfs pointer: the real file was never downloaded"], None
    if full.endswith(".gguf") or begin.startswith(b"GGUF"):
        wrong, facts_of_header = gguf.examine(full, size)
        return "gguf", _list(wrong), facts_of_header or None
    if full.endswith(".safetensors"):
        return "safetensors", _list(safetensors.problem(full, size)), None
    if full.endswith(".safetensors.index.json"):
        return "index", [item["problem"] for item in safetensors.index_problems(full)], None
    return None, [], None


def _list(text: Optional[str]) -> List[str]:
    return [] if text is None else [text]


def _digests(
    root: str,
    entries: List[Dict[str, Any]],
    known: Dict[str, Any],
    deep: bool,
    telling: Tuple[Progress, float],
    problems: List[Dict[str, str]],
) -> int:
    """Fill in digests; returns how many bytes were read for them."""
    fresh = []
    for entry in entries:
        size, mtime_ns, digest = known.get(entry["path"], (None, None, None))
        if (size, mtime_ns) == (entry["size"], entry["mtime_ns"]) and digest:
            entry["sha256"] = digest
        elif deep:
            fresh.append(entry)
    total: int = sum(entry["size"] for entry in fresh)
    progress, tick = telling
    read = [0] * len(fresh)  # bytes of each file so far; every reader writes its own place only

    # hashlib lets other threads run; two readers keep the disk and one core each busy.
    with concurrent.futures.ThreadPoolExecutor(max_workers=2) as pool:
        jobs = {
            pool.submit(file_digest, _full(root, entry), functools.partial(read.__setitem__, place)): entry
            for place, entry in enumerate(fresh)
        }
        waiting = set(jobs)
        while waiting:
            finished, waiting = concurrent.futures.wait(waiting, tick, concurrent.futures.FIRST_COMPLETED)
            for job in finished:
                try:
                    jobs[job]["sha256"] = job.result()
                except OSError as error:
                    problems.append({"path": jobs[job]["path"], "problem": f"cannot be read: {error.strerror}"})
            progress({"hashed_bytes": sum(read), "total_bytes": total})
    return total


def _full(root: str, entry: Dict[str, Any]) -> str:
    return os.path.join(root, entry["path"]) if os.path.isdir(root) else root


def file_digest(path: str, tell: Optional[Callable[[int], Any]] = None) -> str:
    """SHA-256 of a file of any size; `tell` hears how many bytes are read, block by block."""
    digest, done = hashlib.sha256(), 0
    buffer = bytearray(_BLOCK)
    view = memoryview(buffer)
    with open(path, "rb", buffering=0) as source:
        os.posix_fadvise(source.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
        while True:
            size = source.readinto(buffer)
            if not size:
                return digest.hexdigest()
            digest.update(view[:size])
            done += size
            if tell is not None:
                tell(done)


def _readable(root: str, entries: List[Dict[str, Any]], uid: Optional[int], gids: List[int]) -> Dict[str, Any]:
    """Whether the service's user may read every file; the caller says who that is."""
    if uid is None:
        return {"uid": None, "all": None, "not": []}
    denied, unclear = [], []
    for entry in entries:
        try:
            allowed = facts.readable_by(os.path.realpath(_full(root, entry)), uid, gids)
        except OSError:
            allowed = False
        if allowed is None:
            unclear.append(entry["path"])
        elif not allowed:
            denied.append(entry["path"])
    everything = False if denied else None if unclear else True
    return {"uid": uid, "all": everything, "not": denied, "unclear": unclear, "acl_considered": True}
