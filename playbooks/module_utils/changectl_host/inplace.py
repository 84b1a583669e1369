"""Overwrite a file that must keep its inode: hard links, and single files that are mounted into containers."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from typing import Dict, Tuple

from . import facts, system
from .failure import Failure, from_os_error

Wanted = Tuple[int, int, int, Dict[str, bytes]]  # uid, gid, mode, extended attributes
_KEEP_SIZE = 1


def overwrite(resolved: str, expected: bytes, data: bytes, wanted: Wanted) -> None:
    """Write `data` over the file if it still holds `expected`, and read it back.

    Raises:
        Failure: `changed_by_other`, `disk_full`, `not_permitted`: the old bytes are in place then. `not_written`: they
            are not, or somebody else writes too.
    """
    with facts.opened(resolved, os.O_RDWR) as file:
        if file.data != expected:
            message = f"{resolved} is not what it was: somebody else changed it"
            raise Failure("changed_by_other", message, found=file.sha256)
        _reserve(file.descriptor, len(expected), len(data), resolved)
        try:
            _put(file.descriptor, data)
            _metadata(file.descriptor, wanted)
        except OSError as error:
            _put_back(file.descriptor, expected, resolved)
            raise from_os_error(error, f"writing {resolved}") from error
        if system.read_all(file.descriptor) != data:
            message = f"{resolved} does not hold the written bytes: somebody else writes it too"
            raise Failure("not_written", message, written=True)


def _reserve(descriptor: int, old: int, new: int, path: str) -> None:
    """Ask for the room of a longer file before its first byte changes; where that is not offered, writing may fail."""
    if new <= old:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    if libc.fallocate(descriptor, _KEEP_SIZE, old, new - old) != 0:
        number = ctypes.get_errno()
        if number in (errno.ENOSPC, errno.EDQUOT):
            raise from_os_error(OSError(number, os.strerror(number)), f"writing {path}")


def _put_back(descriptor: int, expected: bytes, path: str) -> None:
    if system.read_all(descriptor) == expected:
        return  # a full disk may have refused the first byte already, and would refuse it again
    try:
        _put(descriptor, expected)
    except OSError as error:
        message = f"{path} could be neither written nor given its old bytes back: {error.strerror}"
        raise Failure("not_written", message, written=True) from error


def _put(descriptor: int, data: bytes) -> None:
    os.lseek(descriptor, 0, os.SEEK_SET)
    system.write_all(descriptor, data)
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _metadata(descriptor: int, wanted: Wanted) -> None:
    uid, gid, mode, xattrs = wanted
    status = os.fstat(descriptor)
    if (status.st_uid, status.st_gid) != (uid, gid):
        os.fchown(descriptor, uid, gid)
    system.set_xattrs(descriptor, xattrs)
    if stat.S_IMODE(os.fstat(descriptor).st_mode) != mode:
        os.fchmod(descriptor, mode)
    os.fsync(descriptor)


def is_torn(present: bytes, old: bytes, new: bytes) -> bool:
    """Whether `present` is what a kill in the middle of writing `new` over `old` leaves."""
    length = min(len(present), len(new))
    common = next((at for at in range(length) if present[at] != new[at]), length)
    return present[common:] == old[common:]
