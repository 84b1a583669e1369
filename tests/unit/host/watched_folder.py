"""Sees every name that ever appears in a folder, however short-lived, as a service that scans its folder could."""

from __future__ import annotations

import ctypes
import fnmatch
import os
import struct
from pathlib import Path

_APPEARS = 0x100 | 0x80  # IN_CREATE, IN_MOVED_TO
_HEADER = struct.Struct("iIII")


class WatchedFolder:
    """The kernel's own account (inotify) of what appeared since the watch began."""

    def __init__(self, folder: Path) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor = libc.inotify_init1(os.O_NONBLOCK)
        assert self._descriptor >= 0
        assert libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _APPEARS) >= 0

    def appeared(self) -> list[str]:
        """The names, in order; the watch ends."""
        names: list[str] = []
        with os.fdopen(self._descriptor, "rb", buffering=0) as events:
            while data := events.read(1 << 20):
                while data:
                    length = _HEADER.unpack_from(data)[3]
                    names.append(data[_HEADER.size : _HEADER.size + length].rstrip(b"\0").decode())
                    data = data[_HEADER.size + length :]
        return names


def scanned(names: list[str], pattern: str) -> set[str]:
    """What a scan of the folder for a pattern would have taken for configuration: hidden names are not looked at."""
    return {name for name in names if fnmatch.fnmatch(name, pattern) and not name.startswith(".")}
