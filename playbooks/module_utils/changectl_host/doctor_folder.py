"""Is a folder of ours fit for its work? It is tried in a folder beside or in it that is gone a moment later."""

from __future__ import annotations

import contextlib
import os
import shutil
import struct
import tempfile
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import locks, procfs
from .failure import Failure, from_os_error

Record = Dict[str, Any]
_PREFIX = ".changectl-doctor-"
_STALE = 600.0  # seconds after which a scratch folder is nobody's any more
_BLOCK = 65536  # bytes that are written to see whether there is room at all
_ACL = "system.posix_acl_access"
_NOBODY = 65534
# Owner rw, user nobody r, group r, mask r, others nothing: the layout is the kernel's, see acl.py.
_ENTRIES = ((0x01, 6, 0xFFFFFFFF), (0x02, 4, _NOBODY), (0x04, 4, 0xFFFFFFFF), (0x10, 4, 0xFFFFFFFF),
            (0x20, 0, 0xFFFFFFFF))  # fmt: skip


def examine(path: str) -> Record:
    """One folder: {path, exists, problem, place, ..., writes, attributes, acl, label, stale}.

    `place` is the folder itself, or the nearest one above it that exists. `problem`: why the program would not use it.
    `writes`: empty, or why nothing can be written; `attributes` and `acl` likewise, None: not tried.
    """
    place = _nearest(path)
    found: Record = {"path": path, "exists": os.path.isdir(path), "problem": None, "place": place,
                     "writes": "", "attributes": None, "acl": None, "label": None}  # fmt: skip
    try:
        locks.check_private(path)
    except Failure as failure:
        found["problem"] = failure.message
    found.update(mounted(place))
    found["stale"] = _stale(place)
    try:
        with _scratch(place) as file:
            found.update(attributes=_attribute(file, "user.changectl", b"tried"), acl=_acl(file), label=_label(file))
            _fill(file)
    except OSError as error:
        found["writes"] = from_os_error(error, f"writing in {place}").message
    return found


def mounted(place: str) -> Record:
    """Which file system holds a folder, and its room: {file_system, options, free, total, free_inodes, inodes}."""
    kind, options = _mount(os.path.realpath(place))
    room = os.statvfs(place)
    return {"file_system": kind, "options": options, "free": room.f_bavail * room.f_frsize,
            "total": room.f_blocks * room.f_frsize, "free_inodes": room.f_favail, "inodes": room.f_files}  # fmt: skip


def _mount(place: str) -> Tuple[Optional[str], List[str]]:
    """Type and options of the mount that holds a path; of several on one point the last one counts."""
    best: Tuple[str, Optional[str], List[str]] = ("", None, [])
    for line in procfs.read_text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        words, kind = left.split(), right.split()[:1]
        if len(words) < 6 or not kind:
            continue
        point = words[4].encode().decode("unicode_escape").encode("latin-1").decode(errors="replace")
        if (place + "/").startswith(point.rstrip("/") + "/") and len(point) >= len(best[0]):
            best = (point, kind[0], sorted(words[5].split(",")))
    return best[1], best[2]


def _nearest(path: str) -> str:
    while not os.path.isdir(path) and path != "/":
        path = os.path.dirname(os.path.abspath(path))
    return path


@contextlib.contextmanager
def _scratch(place: str) -> Iterator[str]:
    """An empty file in a private folder of its own."""
    folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
    try:
        file = os.path.join(folder, "scratch")
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        yield file
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(file: str) -> None:
    with open(file, "wb", buffering=0) as target:
        view = memoryview(bytes(_BLOCK))
        while view:
            view = view[target.write(view) :]
        os.fsync(target.fileno())


def _attribute(file: str, name: str, value: bytes) -> str:
    """Set an attribute and read it again; empty: it is as it was set, else what went wrong."""
    try:
        os.setxattr(file, name, value)
        back = os.getxattr(file, name)
        os.removexattr(file, name)
    except OSError as error:
        return error.strerror or str(error)
    return "" if back == value else "it is not what was set"


def _acl(file: str) -> str:
    data = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in _ENTRIES)
    return _attribute(file, _ACL, data)


def _label(file: str) -> Optional[str]:
    """The label that SELinux gives to a new file here."""
    try:
        return os.getxattr(file, "security.selinux").rstrip(b"\0").decode(errors="replace")
    except OSError:
        return None


def _stale(place: str) -> List[str]:
    """Scratch folders that a killed call left."""
    found = []
    with contextlib.suppress(OSError):
        for entry in os.scandir(place):
            with contextlib.suppress(OSError):
                old = time.time() - entry.stat(follow_symlinks=False).st_mtime > _STALE
                if old and entry.name.startswith(_PREFIX):
                    found.append(entry.path)
    return sorted(found)
