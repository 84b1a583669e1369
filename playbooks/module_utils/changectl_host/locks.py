"""The host's two locks, which the kernel frees when their holder dies, and the folders that they lie in.

Always taken in this order: the host lock, for as long as a change lasts, also a stop of the service; then the lease
lock, for the milliseconds in which it is decided who owns what. A heartbeat takes only the second.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import threading
import time
from typing import Any, Iterator, Optional

from . import holders
from .failure import Failure, from_os_error

HOST_WAIT = 30.0  # seconds; another call of ours holds the lock for milliseconds, or for a service's stop
LEASE_WAIT = 20.0  # seconds; it is held for milliseconds, but a disk may be busy
PLACE = "CHANGECTL_HOST_DIR"  # names another host folder, where one machine stands for several hosts
UPSTREAMS = "upstreams"  # below the host folder: one folder, with a lease of its own, for each upstream of a balancer
_UPSTREAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,99}\Z")
_own = threading.local()  # what this thread holds already


def default_root() -> str:
    """/var/lib/changectl for root, else a folder in the user's home."""
    return "/var/lib/changectl" if os.geteuid() == 0 else os.path.expanduser("~/.local/state/changectl")


def host_folder() -> str:
    """Where this host's lease lies, whichever state folder a run names: one lease per host, and per upstream."""
    base = os.environ.get(PLACE) or default_root()
    name = upstream()
    return base if name is None else os.path.join(base, UPSTREAMS, name)


def upstream() -> Optional[str]:
    """The upstream that this thread acts for; None: the host itself."""
    found: Optional[str] = _own.__dict__.get("upstream")
    return found


@contextlib.contextmanager
def of_upstream(name: Any) -> Iterator[str]:
    """Within it, the host folder is that of one upstream of a balancer; gives the folder, for leases and runs alike.

    Raises:
        Failure: `bad_arguments`.
    """
    if not isinstance(name, str) or not _UPSTREAM.match(name):
        raise Failure("bad_arguments", f"{name!r} cannot name an upstream")
    _own.upstream = name
    try:
        yield host_folder()
    finally:
        del _own.upstream


def check_private(place: str) -> None:
    """Whoever can write into our folder could lay down what is restored as root later, or run as our program.

    Raises:
        Failure: `unsafe_state` when an existing folder is not ours alone.
    """
    try:
        status = os.stat(place)
    except OSError:
        return  # it is made, with 0700, when it is needed
    if not stat.S_ISDIR(status.st_mode):
        raise Failure("unsafe_state", f"{place} is not a folder")
    if status.st_uid != os.geteuid():
        raise Failure("unsafe_state", f"{place} belongs to another user (uid {status.st_uid}), not to us")
    if status.st_mode & 0o022:
        mode = stat.S_IMODE(status.st_mode)
        raise Failure(
            "unsafe_state", f"{place} can be written by others (mode {mode:04o}): chmod go-w it, or name another"
        )


def open_lock(path: str) -> int:
    """A lock file's descriptor; it is made (0600) when it is missing, with its folder (0700)."""
    try:
        _make_private(os.path.dirname(path))
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise from_os_error(error, f"opening the lock {path}") from error


def _make_private(folder: str) -> None:
    """Make a folder and what is missing above it, each for us alone."""
    if folder and not os.path.isdir(folder):
        _make_private(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def try_lock(descriptor: int) -> bool:
    """Take a lock if it is free."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def host_lock(root: str, wait: float = HOST_WAIT) -> Iterator[None]:
    """Hold the host's lock; whoever holds it already (in this thread) goes on holding it.

    Raises:
        Failure: `host_busy` when another call still holds it after `wait` seconds.
    """
    with _held(os.path.join(root, "lock"), wait, 0.02):
        yield


@contextlib.contextmanager
def lease_lock() -> Iterator[str]:
    """Hold the lock under which every decision about leases falls; gives the host folder.

    Raises:
        Failure: `host_busy`.
    """
    with _held(lease_lock_path(), LEASE_WAIT, 0.003):
        yield host_folder()


def lease_lock_path() -> str:
    """Where the lease's lock lies."""
    return os.path.join(host_folder(), "lease.lock")


@contextlib.contextmanager
def _held(path: str, wait: float, pause: float) -> Iterator[None]:
    mine = _own.__dict__.setdefault("paths", set())
    if path in mine:
        yield
        return
    descriptor = open_lock(path)
    try:
        check_private(os.path.dirname(path))
        deadline = time.monotonic() + wait
        while not try_lock(descriptor):
            if time.monotonic() >= deadline:
                who = holders.told(path)
                message = f"another changectl call holds {path} for over {wait:g} s"
                raise Failure("host_busy", message + (f": process {who}" if who else ""))
            time.sleep(pause)
        mine.add(path)
        yield
    finally:
        mine.discard(path)
        os.close(descriptor)
