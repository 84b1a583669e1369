"""What a file is: bytes, owner, mode, extended attributes, and how it can be replaced."""

from __future__ import annotations

import base64
import contextlib
import grp
import os
import pwd
import stat
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import acl, system
from .failure import Failure, from_os_error


class Opened:
    """A regular file held open, with its metadata and content as they were when it was opened."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor
        self.status = os.fstat(descriptor)
        self.xattrs = system.get_xattrs(descriptor)
        self.data = system.read_all(descriptor)
        self.sha256 = system.sha256(self.data)

    @property
    def mode(self) -> int:
        """Permission bits, set-id and sticky bits included."""
        return stat.S_IMODE(self.status.st_mode)


def resolve(path: str) -> str:
    """The file that a path leads to through symbolic links.

    Raises:
        Failure: `not_absolute`; `dangling_link` when a link leads nowhere.
    """
    if not isinstance(path, str) or not os.path.isabs(path) or "\0" in path:
        raise Failure("not_absolute", f"{path!r} is not an absolute path")
    resolved = os.path.realpath(path)
    if os.path.islink(path) and not os.path.lexists(resolved):
        raise Failure("dangling_link", f"{path} is a symbolic link to {resolved}, which does not exist")
    return resolved


@contextlib.contextmanager
def opened(resolved: str, flags: int = os.O_RDONLY) -> Iterator[Opened]:
    """Open a regular file and read it whole.

    Raises:
        Failure: `not_found`, `not_regular` (a folder, device, pipe or socket), `not_permitted`.
    """
    try:
        descriptor = os.open(resolved, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if stat_or_none(resolved) is not None and not stat.S_ISREG(os.lstat(resolved).st_mode):
            raise Failure("not_regular", f"{resolved} is not a regular file") from error
        raise from_os_error(error, f"opening {resolved}") from error
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise Failure("not_regular", f"{resolved} is a folder, not a file")
        if not stat.S_ISREG(mode):
            raise Failure("not_regular", f"{resolved} is not a regular file")
        yield Opened(resolved, descriptor)
    finally:
        os.close(descriptor)


def stat_or_none(path: str) -> Optional[os.stat_result]:
    """lstat, or None when nothing lies there."""
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def describe(path: str, reader: Optional[Tuple[int, Iterable[int]]] = None, content: bool = True) -> Dict[str, Any]:
    """Everything the controller wants to know about one configuration file.

    Args:
        path: absolute; links are followed.
        reader: user id and group ids of the service, to tell whether it can read the file.
        content: whether to include the bytes (base64).
    """
    resolved = resolve(path)
    if stat_or_none(resolved) is None:
        return {"exists": False, "resolved": resolved}
    with opened(resolved) as file:
        found = {"exists": True, "is_link": resolved != path and os.path.islink(path), **metadata(file)}
        found["immutable"] = system.is_immutable(file.descriptor)
        found["mount_point"] = is_mount_point(resolved)
        if content:
            found["content"] = base64.b64encode(file.data).decode("ascii")
    found["readable_by_service"] = None if reader is None else readable_by(resolved, *reader)
    return found


def metadata(file: Opened) -> Dict[str, Any]:
    """Digest and metadata of an open file, in the form that snapshots keep."""
    status = file.status
    return {
        "resolved": file.path,
        "nlink": status.st_nlink,
        "mode": file.mode,
        "uid": status.st_uid,
        "gid": status.st_gid,
        "owner": user_name(status.st_uid),
        "group": group_name(status.st_gid),
        "mtime_ns": status.st_mtime_ns,
        "size": len(file.data),
        "sha256": file.sha256,
        "xattrs": encode_xattrs(file.xattrs),
        "xattrs_sha256": xattrs_digest(file.xattrs),
    }


def encode_xattrs(xattrs: Dict[str, bytes]) -> Dict[str, str]:
    """Extended attributes as JSON can carry them."""
    return {name: base64.b64encode(value).decode("ascii") for name, value in xattrs.items()}


def decode_xattrs(encoded: Dict[str, str]) -> Dict[str, bytes]:
    """The inverse of `encode_xattrs`."""
    return {name: base64.b64decode(value) for name, value in encoded.items()}


def xattrs_digest(xattrs: Dict[str, bytes]) -> str:
    """One digest over all names and values; lengths keep neighbours apart."""
    parts: List[bytes] = []
    for name, value in sorted(xattrs.items()):
        raw = os.fsencode(name)
        parts += [b"%d:" % len(raw), raw, b"%d:" % len(value), value]
    return system.sha256(b"".join(parts))


def user_name(uid: int) -> str:
    """The user's name, or the number as text when the host does not know it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def group_name(gid: int) -> str:
    """The group's name, or the number as text when the host does not know it."""
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def is_mount_point(path: str) -> bool:
    """Whether this very file is mounted (a container's single-file mount): a new inode would not be seen there."""
    wanted = os.fsencode(path)
    try:
        with open("/proc/self/mountinfo", "rb") as source:
            return any(_unescape(line.split(b" ")[4]) == wanted for line in source)
    except OSError:
        return False


def _unescape(field: bytes) -> bytes:
    for code, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n"), (b"\\134", b"\\")):
        field = field.replace(code, char)
    return field


def readable_by(path: str, uid: int, gids: Iterable[int]) -> Optional[bool]:
    """Whether a user may read a file and pass every folder above it, access control lists considered; None: unclear."""
    groups = set(gids)
    if uid == 0:
        return True
    allowed = [acl.allows(path, os.stat(path), uid, groups, 4)]
    folder = path
    while folder != "/":
        folder = os.path.dirname(folder)
        allowed.append(acl.allows(folder, os.stat(folder), uid, groups, 1))
    if False in allowed:
        return False
    return None if None in allowed else True


def ids_of(name: str) -> Optional[Tuple[int, List[int]]]:
    """User id and group ids of a user by name or number; None when the host does not know the user."""
    try:
        entry = pwd.getpwuid(int(name)) if name.isdigit() else pwd.getpwnam(name)
    except KeyError:
        return None
    return entry.pw_uid, os.getgrouplist(entry.pw_name, entry.pw_gid)
