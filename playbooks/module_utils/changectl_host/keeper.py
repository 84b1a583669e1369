"""Who keeps watch: the process that sleeps until a lease runs out, and how it is started and found.

The sleeper holds a lock in its run's folder as long as it lives. That tells it from any other process without a doubt,
and the kernel takes the lock away when it dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from . import commands, locks
from .failure import Failure
from .state import Run

LOCK, BELL = "keeper.lock", "keeper.bell"
_START = 30.0  # seconds that the sleeper gets to say that it runs; a loaded machine may take its time
_OTHERS = 10.0  # seconds after which a lock that is still taken means: somebody else keeps watch


def running(run: Run) -> Optional[int]:
    """The sleeper's process id (0: it just begins); None when nobody keeps watch."""
    try:
        descriptor = os.open(run.path(LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def hold(run: Run) -> Optional[int]:
    """For the sleeper itself: take its lock; None when another one holds it."""
    descriptor = locks.open_lock(run.path(LOCK))
    deadline = time.monotonic() + _OTHERS
    # Whoever looks whether somebody keeps watch holds the lock for a moment.
    while not locks.try_lock(descriptor):
        if time.monotonic() >= deadline:
            os.close(descriptor)
            return None
        time.sleep(0.02)
    os.ftruncate(descriptor, 0)
    return descriptor


def sign(lock: int) -> None:
    """For the sleeper itself: write its process id into its lock."""
    os.pwrite(lock, b"%d\n" % os.getpid(), 0)


def open_bell(run: Run) -> int:
    """For the sleeper itself: what others ring to let it look again; a pipe, so that no signal can hit a stranger."""
    path = run.path(BELL)
    with contextlib.suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        raise Failure("damaged_state", f"{path} is not a pipe")
    return descriptor


def ring(run: Run, wait: float = 2.0) -> bool:
    """Let the sleeper look again at once, and wait for its end; whether nobody keeps watch any more."""
    with contextlib.suppress(OSError):  # nobody listens: it ended, or it looks by itself in a moment
        descriptor = os.open(run.path(BELL), os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(descriptor, "wb", buffering=0) as bell:
            bell.write(b"!")
    _wait(lambda: running(run) is None, wait)
    return running(run) is None


def plan() -> Dict[str, Any]:
    """Who will keep watch on this host: {kind: "process"}."""
    return {"kind": "process"}


def start(run: Run) -> None:
    """Start the sleeper and wait until it keeps watch.

    Raises:
        Failure: `no_keeper` when it does not come up.
    """
    _detached(run)
    _wait(lambda: running(run) is not None, _START)
    if running(run) is None:
        raise Failure("no_keeper", f"nobody keeps watch over run {run.name}: the sleeper did not come up")


def words(run: Run, action: str) -> List[str]:
    """The command that runs the program in the run's folder."""
    return [sys.executable, "-I", run.path("program.pyz"), action, "--run", run.name, "--state-dir", run.root]


def _detached(run: Run) -> None:
    """A process that belongs to nobody; it is not started again by anybody."""
    # Without the run's mark: those that end a run's orphans must not end it.
    result = commands.run([*words(run, "deadman"), "--detach"], timeout=_START, cwd="/")
    if result.status:
        raise Failure("no_keeper", f"the sleeper could not be started: {(result.err or result.out).strip()[-500:]}")


def detach() -> None:
    """Make this process nobody's child, without a terminal, in no folder."""
    for last in (False, True):
        if os.fork():
            os._exit(0)
        if not last:
            os.setsid()
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.close(null)


def _wait(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
