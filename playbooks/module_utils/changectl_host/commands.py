"""Start other programs: argument lists only, marked with the run, bounded in time, and never left behind."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Set

from .failure import Failure

MARK = "CHANGECTL_RUN"
_children: Set[int] = set()  # process groups to end when our own end comes
_guard = threading.Lock()


class Result(NamedTuple):
    """How a program ended."""

    status: int
    out: str
    err: str


def marked_environment(run: Optional[str], environment: Optional[Dict[str, str]] = None) -> Dict[str, str]:
    """Our environment, or the given one, with the mark by which leftovers of a run are recognised."""
    return {**(os.environ if environment is None else environment), MARK: run or "-"}


def run(
    argv: List[str],
    timeout: float = 30.0,
    run_id: Optional[str] = None,
    environment: Optional[Dict[str, str]] = None,
    **options: Any,
) -> Result:
    """Run a program to its end; stdin is empty, and the messages are in English.

    Raises:
        Failure: `no_such_program`; `timed_out` (the program and its children were killed).
    """
    wanted = marked_environment(run_id, environment)
    if environment is None:
        wanted.update(LC_ALL="C.UTF-8", SYSTEMD_COLORS="0", SYSTEMD_PAGER="")
    process = spawn(
        argv, env=wanted, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise Failure("timed_out", f"{argv[0]} did not end within {timeout:g} s and was stopped") from None
    finally:
        finish(process)
    return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))


def head(argv: List[str], lines: int, timeout: float = 20.0) -> str:
    """The first lines that a program prints; it is ended when it has printed them, or when the time is over.

    Raises:
        Failure: `no_such_program`.
    """
    process = spawn(
        argv, env=marked_environment(None), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    alarm = threading.Timer(timeout, _kill_group, [process.pid])
    alarm.daemon = True
    alarm.start()
    try:
        return b"".join(itertools.islice(process.stdout or (), lines)).decode(errors="replace")
    finally:
        alarm.cancel()
        finish(process)


def spawn(argv: List[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a program in a session of its own and remember it; end it with `finish`.

    Raises:
        Failure: `no_such_program`, `not_permitted`.
    """
    try:
        process = subprocess.Popen(argv, start_new_session=True, **options)
    except (FileNotFoundError, NotADirectoryError):
        raise Failure("no_such_program", f"{argv[0]} does not exist on this host") from None
    except PermissionError as error:
        raise Failure("not_permitted", f"{argv[0]} may not be started: {error.strerror}") from None
    with _guard:
        _children.add(process.pid)
    return process


def finish(process: subprocess.Popen[bytes]) -> None:
    """Make sure that the program and what it started are gone."""
    if process.poll() is None:
        _kill_group(process.pid)
        process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            with contextlib.suppress(OSError):
                stream.close()
    with _guard:
        _children.discard(process.pid)


def kill_all() -> None:
    """End every program that is still running for us."""
    with _guard:
        left = list(_children)
    for group in left:
        _kill_group(group)


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
