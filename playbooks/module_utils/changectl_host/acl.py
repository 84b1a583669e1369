"""POSIX access control lists as the kernel keeps them: who may do what with a file beyond its mode bits."""

from __future__ import annotations

import os
import struct
from typing import Collection, List, NamedTuple, Optional

_NAME = "system.posix_acl_access"
_VERSION = 2
_OWNER, _USER, _GROUP_OWNER, _GROUP, _MASK, _OTHER = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20


class Entry(NamedTuple):
    """One line of a list."""

    tag: int
    bits: int  # 4: read, 2: write, 1: execute or pass
    who: int


def parse(data: bytes) -> List[Entry]:
    """The entries of a list.

    Raises:
        ValueError: not the layout that is known.
    """
    if len(data) < 4 or (len(data) - 4) % 8 or struct.unpack_from("<I", data)[0] != _VERSION:
        raise ValueError("this access control list is not understood")
    return [Entry(*entry) for entry in struct.iter_unpack("<HHI", data[4:])]


def allows(path: str, status: os.stat_result, uid: int, groups: Collection[int], bit: int) -> Optional[bool]:
    """Whether a user may read (4) or pass (1) a path, by its list or, without one, by its mode; None: not understood.

    The kernel's own order: the owner, a named user, then any fitting group, then all others; the mask bounds all but
    owner and others.
    """
    try:
        entries = parse(os.getxattr(path, _NAME))
    except ValueError:
        return None
    except OSError:  # no list, or a file system without any
        return _by_mode(status, uid, groups, bit)
    return by_list(entries, status, uid, groups, bit)


def _by_mode(status: os.stat_result, uid: int, groups: Collection[int], bit: int) -> bool:
    if status.st_uid == uid:
        return bool(status.st_mode & (bit << 6))
    if status.st_gid in groups:
        return bool(status.st_mode & (bit << 3))
    return bool(status.st_mode & bit)


def by_list(entries: List[Entry], status: os.stat_result, uid: int, groups: Collection[int], bit: int) -> bool:
    """Whether the entries of a file's list let a user do what the bit says."""
    mask = next((entry.bits for entry in entries if entry.tag == _MASK), 7)
    if status.st_uid == uid:
        return any(entry.bits & bit for entry in entries if entry.tag == _OWNER)
    named = [entry for entry in entries if entry.tag == _USER and entry.who == uid]
    if named:
        return bool(named[0].bits & mask & bit)
    fitting = [
        entry
        for entry in entries
        if (entry.tag == _GROUP_OWNER and status.st_gid in groups) or (entry.tag == _GROUP and entry.who in groups)
    ]
    if fitting:
        return any(entry.bits & mask & bit for entry in fitting)
    return any(entry.bits & bit for entry in entries if entry.tag == _OTHER)
