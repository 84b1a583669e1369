"""The few system calls that Python's standard library does not offer, and durable small writes."""

from __future__ import annotations

import array
import ctypes
import errno
import fcntl
import hashlib
import os
from typing import Dict, List, Optional

RENAME_NOREPLACE = 1
RENAME_EXCHANGE = 2
_AT_FDCWD = -100
_FS_IOC_GETFLAGS = 0x80086601 if ctypes.sizeof(ctypes.c_long) == 8 else 0x80046601
_IMMUTABLE = 0x10
_APPEND_ONLY = 0x20
_UNSUPPORTED = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP)


class RenameUnsupported(Exception):
    """This kernel or file system has no renameat2 with the wanted flag."""


def rename2(source: str, target: str, flags: int) -> None:
    """renameat2(2). Raises RenameUnsupported, or OSError as the kernel says."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is None:
        raise RenameUnsupported
    code = function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), ctypes.c_uint(flags))
    if code == 0:
        return
    number = ctypes.get_errno()
    if number in _UNSUPPORTED:
        raise RenameUnsupported
    raise OSError(number, os.strerror(number), target)


def file_flags(descriptor: int) -> Optional[int]:
    """The file's inode flags (chattr), or None where the file system has none."""
    buffer = array.array("l", [0])
    try:
        fcntl.ioctl(descriptor, _FS_IOC_GETFLAGS, buffer, True)
    except OSError:
        return None
    return int(buffer[0])


def is_immutable(descriptor: int) -> Optional[bool]:
    """Whether chattr +i or +a forbids changing the file; None: cannot be told."""
    flags = file_flags(descriptor)
    return None if flags is None else bool(flags & (_IMMUTABLE | _APPEND_ONLY))


def get_xattrs(descriptor: int) -> Dict[str, bytes]:
    """All extended attributes that we may read, ACLs and labels included, as raw bytes."""
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return {}
        raise
    return {name: os.getxattr(descriptor, name) for name in sorted(names)}


def set_xattrs(descriptor: int, wanted: Dict[str, bytes]) -> None:
    """Make the file's extended attributes exactly `wanted`; touches only those that differ."""
    present = get_xattrs(descriptor)
    for name in present:
        if name not in wanted:
            os.removexattr(descriptor, name)
    for name, value in wanted.items():
        if present.get(name) != value:
            os.setxattr(descriptor, name, value)


def sync_directory(path: str) -> None:
    """Put a folder's entries on disk, so that a rename survives a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte at the descriptor's position."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def read_all(descriptor: int) -> bytes:
    """The whole content of a regular file, from its first byte."""
    parts: List[bytes] = []
    position = 0
    while True:
        part = os.pread(descriptor, 1 << 20, position)
        if not part:
            return b"".join(parts)
        parts.append(part)
        position += len(part)


def save(path: str, data: bytes) -> None:
    """Write a file of our own (0600) so that it is either absent, old or complete, also after a power cut."""
    temporary = f"{path}.{os.getpid()}.part"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    finally:
        os.close(descriptor)
    sync_directory(os.path.dirname(path))


def sha256(data: bytes) -> str:
    """Hexadecimal SHA-256."""
    return hashlib.sha256(data).hexdigest()
