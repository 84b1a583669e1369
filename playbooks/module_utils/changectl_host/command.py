"""The `command` manager: a service that its own start and stop commands manage, found by a pid file or a port."""

from __future__ import annotations

import json
import os
import pwd
import signal
import sys
import time
from typing import Any, Dict, List, Optional

from . import commands, launcher, procfs, program
from .failure import Failure, from_os_error
from .state import Run, read_json, save_json

_PID_FILE_SLACK = 2.0  # seconds by which file times and process times may disagree
_SETTLE = 5.0  # how long a start command may take until its process can be found


def check(settings: Dict[str, Any]) -> None:
    """Raises Failure `bad_arguments` when the description is not usable."""
    for name, needed in (("start", True), ("stop", False)):
        words = settings.get(name)
        if not _is_argv(words) and (needed or words is not None):
            raise Failure("bad_arguments", f"manager command: {name} must be a list of words, not {words!r}")
    pid = settings.get("pid")
    if not isinstance(pid, dict) or len(pid) != 1 or not set(pid) <= {"file", "port"}:
        raise Failure("bad_arguments", 'manager command: pid must be {"file": path} or {"port": number}')
    if "port" in pid and not (isinstance(pid["port"], int) and 0 < pid["port"] < 65536):
        raise Failure("bad_arguments", f"manager command: {pid['port']!r} is not a port")
    if "file" in pid and not isinstance(pid["file"], str):
        raise Failure("bad_arguments", "manager command: the pid file must be a path")


def _is_argv(words: Any) -> bool:
    return isinstance(words, list) and bool(words) and all(isinstance(word, str) and "\0" not in word for word in words)


def find(settings: Dict[str, Any]) -> Optional[int]:
    """The service's main process; None when it does not run (a stale pid file counts as not running)."""
    pid = settings["pid"]
    if "port" in pid:
        return procfs.port_owner(pid["port"])
    return _from_pid_file(os.path.join(settings.get("cwd") or "/", pid["file"]))


def _from_pid_file(path: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii", errors="replace") as source:
            text = source.read(64).strip()
        written = os.stat(path).st_mtime
    except OSError:
        return None
    if not text.isdigit():
        return None
    found = procfs.stat(int(text))
    if found is None:
        return None
    # A process that started after its pid file was written only inherited the number.
    started = procfs.boot_time() + found.start_ticks / procfs.TICKS
    return None if started > written + _PID_FILE_SLACK else found.pid


def signal_stop(settings: Dict[str, Any], pid: int, run: Run, timeout: float) -> None:
    """Ask the service to end: its stop command, or SIGTERM where there is none.

    Raises:
        Failure: `no_such_program`.
    """
    if settings.get("stop"):
        try:
            commands.run(settings["stop"], timeout, run.name, cwd=settings.get("cwd") or "/")
        except Failure as failure:
            if failure.reason != "timed_out":
                raise
        return
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return
    except PermissionError as error:
        raise from_os_error(error, f"stopping process {pid}") from error


def require_user(settings: Dict[str, Any], process: Optional[Dict[str, Any]]) -> None:
    """Raises Failure `other_user` when this user could not start the service as the user that it runs as."""
    uid = identity(settings, process)["uid"]
    if uid is not None and os.geteuid() not in (0, uid):
        message = f"the service runs as uid {uid}, and only root could start it again as that user"
        raise Failure("other_user", f"{message}: let the inventory become root, or become that user", uid=uid)


def identity(settings: Dict[str, Any], process: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """As whom the service is started: the user that its description names, else the one that it ran as.

    Returns: {uid, gid, groups}; uid None: nobody else than us.
    """
    entry = _user(settings)
    if entry is not None:
        return {"uid": entry.pw_uid, "gid": entry.pw_gid, "groups": os.getgrouplist(entry.pw_name, entry.pw_gid)}
    return {name: (process or {}).get(name) for name in ("uid", "gid", "groups")}


def start(settings: Dict[str, Any], run: Run, saved: Optional[Dict[str, Any]]) -> Dict[str, Any]:
    """Run the start command detached, its output in the run's folder; returns {started_pid, log_file}.

    Args:
        settings: the manager's description.
        run: whose folder takes the output.
        saved: process facts of the snapshot: user, environment, working folder, limits, file mode mask, niceness and
            processors to start with; None: ours.

    Raises:
        Failure: `start_failed` when the start command itself cannot be run; `other_user`.
    """
    require_user(settings, saved)
    log = os.path.join(run.make("service"), f"{time.strftime('%Y%m%dT%H%M%S')}-{os.urandom(3).hex()}.log")
    environment = saved["environ"] or {} if saved else {k: v for k, v in os.environ.items() if k != commands.MARK}
    launch = {
        "argv": settings["start"],
        "cwd": settings.get("cwd") or (saved or {}).get("cwd") or "/",
        "environ": environment,
        "limits": (saved or {}).get("limits", {}),
        "log": log,
        "identity": identity(settings, saved) if os.geteuid() == 0 else {},
        **{name: (saved or {}).get(name) for name in ("umask", "nice", "affinity")},
    }
    answer = _launch(launch, run)
    launched = procfs.stat(answer["pid"])
    started = [answer["pid"], launched.start_ticks if launched else 0]
    save_json(run.path("service", "launched.json"), {"identity": started, "log_file": log})
    told = {"launched_pid": answer["pid"], "log_file": log, "not_given": answer["not_given"]}
    return {"started_pid": _settle(settings, started, run), **told}


def _user(settings: Dict[str, Any]) -> Optional[pwd.struct_passwd]:
    name = settings.get("user")
    if name is None:
        return None
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise Failure("bad_arguments", f"manager command: this host has no user {name!r}") from None


def _launch(launch: Dict[str, Any], run: Run) -> Dict[str, Any]:
    """Hand the start to a small helper process, so that the service is nobody's child but the system's."""
    process = commands.spawn(
        [sys.executable, "-I", "-c", program.source_of(launcher)],
        env=commands.marked_environment(run.name),
        stdin=-1,
        stdout=-1,
        stderr=-1,
    )
    try:
        out, err = process.communicate(json.dumps(launch).encode(), timeout=30)
        answer = json.loads(out or b"{}")
    except ValueError:
        answer = {}
    finally:
        commands.finish(process)
    if "pid" not in answer:
        detail = answer.get("error") or err.decode(errors="replace")[-500:]
        raise Failure("start_failed", f"{launch['argv'][0]} could not be started: {detail}")
    return dict(answer)


def _settle(settings: Dict[str, Any], started: List[int], run: Run) -> Optional[int]:
    """Wait until the process can be found or the start command gave up; None: not yet to be found."""
    begun = time.monotonic()
    while time.monotonic() < begun + _SETTLE:
        pid = find(settings)
        if pid is not None:
            return pid
        if "port" in settings["pid"] and procfs.alive((started[0], started[1])):
            # Engines open their port late: the one who watches the start goes on from here.
            time.sleep(0.3)
            if procfs.alive((started[0], started[1])):
                return find(settings)
        if time.monotonic() > begun + 1.0 and not traces(run):
            return None
        time.sleep(0.05)
    return None


def traces(run: Run) -> List[procfs.Identity]:
    """What still runs of the last start by this run: its session, and whoever writes to its log.

    A service that detaches itself wholly before it opens its port or writes its pid file leaves no trace meanwhile.
    """
    last = launched(run)
    if last is None:
        return []
    pid, ticks = last["identity"]
    found = [item for item in procfs.everyone() if item.start_ticks >= ticks]
    held = [item for item in found if item.session == pid or last["log_file"] in _outputs(item.pid)]
    return sorted(((item.pid, item.start_ticks) for item in held), key=lambda identity: (identity[1], identity[0]))


def _outputs(pid: int) -> List[Optional[str]]:
    return [procfs.link(pid, "fd/1"), procfs.link(pid, "fd/2")]


def launched(run: Run) -> Optional[Dict[str, Any]]:
    """What this run started last: {identity: [pid, start_ticks], log_file}."""
    return read_json(run.path("service", "launched.json"))
