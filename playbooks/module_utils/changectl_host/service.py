"""Start, stop, restart and reload the service, through its manager."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Dict, Optional

from . import command, manager, procfs, snapshot, status, stopping, systemd, verify
from .acting import mutating
from .failure import Failure
from .state import Run, boot_id, boot_seconds, read_json

_ACTIONS = ("start", "stop", "restart", "reload")
_TICK = 0.02  # seconds; how exactly the kernel tells when a process was started
_CHANGES = ("write.outcome", "restore.outcome", "part.outcome")


def service(args: Dict[str, Any]) -> Dict[str, Any]:
    """The call: {action, changed, started_pid, seconds, log_cursor: where the log ended before a start, ...}.

    Raises:
        Failure: `still_held` when a process or port outlives the stop; `start_failed`; `no_systemd`; ...
    """
    action = args.get("action")
    if action not in _ACTIONS:
        raise Failure("bad_arguments", f"action must be one of {', '.join(_ACTIONS)}, not {action!r}")
    manager.read(args.get("manager"))
    require_startable(args)
    with mutating(args) as run:
        if args.get("unless") and _settled(args, run):
            return {
                "action": action,
                "changed": False,
                "seconds": 0.0,
                "started_pid": manager.main_pid(args["manager"]),
            }
        run.record("service.intent", action=action)
        begun = time.monotonic()
        try:
            answer = _act(args, run, action)
        except Failure as failure:
            run.record("service.failed", action=action, reason=failure.reason)
            raise
        answer.update(action=action, seconds=round(time.monotonic() - begun, 3))
        run.record("service.outcome", action=action, started_pid=answer.get("started_pid"))
        return answer


def require_startable(args: Dict[str, Any]) -> None:
    """Before the service is stopped: could it be started again as the user that it ran as?

    Raises:
        Failure: `other_user`.
    """
    name, settings = manager.read(args.get("manager"))
    if name == "command" and args.get("environment_from_snapshot"):
        saved = read_json(Run.of(args).path("snapshot", "process.json"))
        command.require_user(settings, saved)


def _act(args: Dict[str, Any], run: Run, action: str) -> Dict[str, Any]:
    answer: Dict[str, Any] = {"changed": False}
    if action in ("stop", "restart"):
        answer.update(stopping.stop(args, run))
    if action in ("start", "restart"):
        answer.update(_start(args, run))
    if action == "reload":
        answer.update(_reload(args, run))
    return answer


def _settled(args: Dict[str, Any], run: Run) -> bool:
    """Whether there is nothing left to do: the service runs since after the run's last change of a file.

    `unless` "fresh" asks that alone; "restored" also that the files (those that `only` names, if it does) are the saved
    ones and did not change since the start, whoever changed them: a service that was started on other bytes runs on
    those; "running" asks only whether it runs at all.
    """
    name, settings = manager.read(args["manager"])
    found = procfs.stat(manager.main_pid(args["manager"]) or 0)
    if args["unless"] == "running":
        return found is not None
    if found is None or (name == "systemd" and systemd.show(settings).get("NeedDaemonReload") == "yes"):
        return False
    changes = [event for event in run.events() if event.get("event") in _CHANGES]
    same_boot = bool(changes) and changes[-1].get("boot") == boot_id()
    if same_boot and found.start_ticks / procfs.TICKS <= changes[-1]["boot_seconds"]:
        return False
    if args["unless"] != "restored":
        return True
    compared = verify.compare(run, args.get("only"))
    started = time.time() - (boot_seconds() - found.start_ticks / procfs.TICKS) + _TICK
    return all((item["equal"] or "part" in item) and _unchanged_since(path, started) for path, item in compared.items())


def _unchanged_since(path: str, moment: float) -> bool:
    """Whether a file is as it was at that time of this host's clock; one that is not there says nothing else."""
    try:
        return os.stat(path).st_ctime <= moment
    except OSError:
        return True  # compared before: absent, as it was saved


def _start(args: Dict[str, Any], run: Run) -> Dict[str, Any]:
    name, settings = manager.read(args["manager"])
    if name == "command":
        running = command.find(settings) or next((identity[0] for identity in command.traces(run)), None)
        if running is not None:
            return {"started_pid": running}
        saved = _saved_process(run, args) if args.get("environment_from_snapshot") else None
        ends_at = status.end_of_log(None, args.get("log_file"))
        return {"changed": True, "log_cursor": ends_at, **command.start(settings, run, saved)}
    if args.get("daemon_reload"):
        _systemctl(run, settings, "daemon-reload")
    if args.get("reset_failed"):
        systemd.systemctl(settings, "reset-failed", settings["unit"], run_id=run.name)  # fails when there is nothing
    before = systemd.main_pid(systemd.show(settings))
    ends_at = None if before else status.end_of_log(settings, args.get("log_file"))
    _systemctl(run, settings, "start", "--no-block", settings["unit"])
    return {"changed": before is None, "started_pid": before or _started_pid(settings), "log_cursor": ends_at}


def _started_pid(settings: Dict[str, Any]) -> Optional[int]:
    """The new main process; None when there is none after three seconds (the one who watches the start goes on)."""
    deadline = time.monotonic() + 3.0
    while True:
        properties = systemd.show(settings)
        pid = systemd.main_pid(properties)
        if pid or properties.get("ActiveState") == "failed" or time.monotonic() >= deadline:
            return pid
        time.sleep(0.05)


def _saved_process(run: Run, args: Dict[str, Any]) -> Dict[str, Any]:
    """The snapshot's process facts; `environment_drop` names variables that the start command sets anew."""
    saved = read_json(run.path("snapshot", "process.json"))
    if saved is None:
        snapshot.manifest(run)
        raise Failure("not_captured", f"run {run.name} saved no running process: its environment is not known")
    if saved.get("environ") is None:
        raise Failure(
            "not_captured", f"run {run.name} could not read the service's environment: it cannot be given back"
        )
    dropped = set(args.get("environment_drop") or [])
    saved["environ"] = {name: value for name, value in saved["environ"].items() if name not in dropped}
    return saved


def _reload(args: Dict[str, Any], run: Run) -> Dict[str, Any]:
    name, settings = manager.read(args["manager"])
    pid = manager.main_pid(args["manager"])
    if pid is None:
        raise Failure("not_running", "the service does not run: it cannot be reloaded")
    if name == "systemd":
        if args.get("daemon_reload"):
            _systemctl(run, settings, "daemon-reload")
        _systemctl(run, settings, "reload", settings["unit"])
    else:
        os.kill(pid, signal.SIGHUP)
    return {"changed": True, "started_pid": pid}


def _systemctl(run: Run, settings: Dict[str, Any], *words: str) -> None:
    result = systemd.systemctl(settings, *words, timeout=90, run_id=run.name)
    if result.status:
        raise Failure("start_failed", f"systemctl {' '.join(words)}: {result.err.strip()[-500:]}")
