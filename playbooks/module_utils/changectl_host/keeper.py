"""Who keeps watch: the process that sleeps until a lease runs out, and how it is started and found.

The sleeper holds a lock in its run's folder as long as it lives. That tells it from any other process without a doubt,
and the kernel takes the lock away when it dies, however it dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from . import commands, locks, systemd
from .failure import Failure
from .state import Run

LOCK, BELL = "keeper.lock", "keeper.bell"
_START = 30.0  # seconds that the sleeper gets to say that it runs; a loaded machine may take its time
_OTHERS = 10.0  # seconds after which a lock that is still taken means: somebody else keeps watch


def running(run: Run) -> Optional[Dict[str, Any]]:
    """The sleeper: {pid, kind, unit}, empty while it just begins; None when nobody keeps watch."""
    try:
        descriptor = os.open(run.path(LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        with contextlib.suppress(ValueError):
            told = json.loads(os.pread(descriptor, 4096, 0))
            return told if isinstance(told, dict) else {}
        return {}
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


def sign(lock: int, unit: Optional[str]) -> None:
    """For the sleeper itself: write who it is into its lock; `unit`: systemd's, which starts it again."""
    told = {"pid": os.getpid(), "kind": "systemd" if unit else "process", "unit": unit}
    os.pwrite(lock, json.dumps(told).encode() + b"\n", 0)


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


def begin(run: Run) -> None:
    """Have the sleeper started, and do not wait until it keeps watch: while a host boots, systemd may do that later.

    Raises:
        Failure: `no_keeper`.
    """
    if running(run) is not None:
        return
    if systemd.owned():
        _transient(run, _unit(), "--no-block")
    else:
        _detached(run)


def _unit() -> str:
    return f"changectl-deadman-{os.urandom(4).hex()}.service"


def start(run: Run) -> Dict[str, Any]:
    """Start the sleeper and wait until it keeps watch; returns who it is: {pid, kind, unit}.

    Raises:
        Failure: `no_keeper` when it does not come up; nothing of it is left then.
    """
    unit = _unit() if systemd.owned() else None
    if unit is None:
        _detached(run)
    else:
        _transient(run, unit)
    _wait(lambda: bool(running(run)), _START)
    found = running(run)
    if not found:
        if unit is not None:
            systemd.systemctl({}, "stop", "--no-block", unit)
        raise Failure("no_keeper", f"nobody keeps watch over run {run.name}: the sleeper did not come up")
    return found


def words(run: Run, action: str) -> List[str]:
    """The command that runs the program in the run's folder."""
    return [sys.executable, "-I", run.path("program.pyz"), action, "--run", run.name, "--state-dir", run.root]


def environment() -> Dict[str, str]:
    """What a program of ours needs of our environment when systemd starts it."""
    found = {name: os.environ[name] for name in ("PATH", "HOME", locks.PLACE) if os.environ.get(name)}
    # To the sleeper of an upstream its folder is all there is of this host.
    return found if locks.upstream() is None else {**found, locks.PLACE: locks.host_folder()}


def _transient(run: Run, unit: str, *how: str) -> None:
    """A unit in memory: systemd starts it again whatever kills it, and need not read any file anew.

    Only its main process is ended with it: a service that it started by a command has to go on.
    """
    properties = ("Restart=always", "RestartSec=200ms", "RestartPreventExitStatus=0", "StartLimitIntervalSec=0",
                  "KillMode=process")  # fmt: skip
    argv = [
        "systemd-run",
        "--quiet",
        "--collect",
        *how,
        f"--unit={unit}",
        f"--description=changectl: watch over {run.name}",
    ]
    argv += [f"--property={text}" for text in properties]
    argv += [f"--setenv={name}={value}" for name, value in environment().items()]
    # A dollar sign would be taken for a variable.
    argv += ["--", *(word.replace("$", "$$") for word in [*words(run, "deadman"), "--unit", unit])]
    result = commands.run(argv, timeout=_START)
    if result.status:
        raise Failure("no_keeper", f"systemd-run could not start the sleeper: {result.err.strip()[-500:]}")


def _detached(run: Run) -> None:
    """A process that belongs to nobody; it is not started again by anybody."""
    # Without the run's mark: those that end a run's orphans must not end it.
    own = {**os.environ, **environment()}
    result = commands.run([*words(run, "deadman"), "--detach"], timeout=_START, environment=own, cwd="/")
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
