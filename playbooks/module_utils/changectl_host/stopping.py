"""Stop a service: stopped means that its whole process tree is gone, its ports are free, and so is its GPU memory."""

from __future__ import annotations

import os
import signal
import time
from typing import Any, Callable, Dict, List, Optional

from . import command, gpu, manager, procfs, systemd
from .failure import Failure
from .state import Run

_ORPHAN_GRACE = 2.0  # seconds that children get to end after their parent did
_AFTER_KILL = 5.0  # seconds that the kernel gets to take away killed processes and their sockets
_GPU_WAIT = 10.0  # seconds that a driver gets to take back the memory of processes that are gone


def stop(args: Dict[str, Any], run: Run) -> Dict[str, Any]:
    """Stop it, and wait until nothing of it is left: {changed, killed, stopped}.

    Raises:
        Failure: `still_held`: what outlives the stop is named.
    """
    name, settings = manager.read(args["manager"])
    pid = manager.main_pid(args["manager"])
    members = _members(name, settings, pid, run)
    ports = procfs.ports_of([identity[0] for identity in members])
    gpus = gpu.read(run) if members else {}
    timeout = float(args.get("stop_timeout", 30))
    deadline = time.monotonic() + timeout
    if name == "systemd":
        systemd.systemctl(settings, "stop", "--no-block", settings["unit"], run_id=run.name)
    elif members:
        command.signal_stop(settings, pid or members[0][0], run, timeout)
    if name == "command":
        # Systemd sees to a unit's leftovers; here nobody else does, and orphans would hold memory until the deadline.
        main = [identity for identity in members if identity[0] == (pid or members[0][0])]
        if _wait_gone(name, settings, main, deadline):
            deadline = min(deadline, time.monotonic() + _ORPHAN_GRACE)
    killed = not _wait_gone(name, settings, members, deadline)
    if killed:
        _kill(members)
        _wait_gone(name, settings, members, time.monotonic() + _AFTER_KILL)
    late = _born_meanwhile(members)
    if late:
        _kill(late)
        members = sorted({*members, *late})
        _wait_gone(name, settings, members, time.monotonic() + _AFTER_KILL)
    _require_gone(members, ports)
    if gpus.get("gpus"):
        _require_memory(run, gpus, [identity[0] for identity in members])
    return {"changed": bool(members), "killed": killed, "stopped": [identity[0] for identity in members]}


def _members(name: str, settings: Dict[str, Any], pid: Optional[int], run: Run) -> List[procfs.Identity]:
    """Everything that belongs to the service, also what this run started and what cannot be found yet."""
    members = set(procfs.tree(pid)) if pid else set()
    if name == "systemd":
        members |= set(_in_cgroup(systemd.show(settings).get("ControlGroup", "")))
    else:
        members |= set(command.traces(run))
    return sorted(members)


def _in_cgroup(group: str) -> List[procfs.Identity]:
    """All processes of a unit's control group, whichever hierarchy this kernel uses."""
    if not group.startswith("/") or group == "/":
        return []
    text = ""
    for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified"):
        for folder, _, names in os.walk(base + group):
            text += procfs.read_text(os.path.join(folder, "cgroup.procs")) if "cgroup.procs" in names else ""
    found = (procfs.stat(int(line)) for line in set(text.split()) if line.isdigit())
    return [(item.pid, item.start_ticks) for item in found if item is not None]


def _wait_gone(name: str, settings: Dict[str, Any], members: List[procfs.Identity], deadline: float) -> bool:
    while True:
        if not any(procfs.alive(identity) for identity in members) and _manager_done(name, settings):
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)


def _manager_done(name: str, settings: Dict[str, Any]) -> bool:
    if name != "systemd":
        return True
    return systemd.show(settings).get("ActiveState") in ("inactive", "failed")


def _kill(members: List[procfs.Identity]) -> None:
    for identity in members:
        if procfs.alive(identity):
            try:
                os.kill(identity[0], signal.SIGKILL)
            except ProcessLookupError:
                continue
            except PermissionError:
                continue  # named by the check that follows


def _born_meanwhile(members: List[procfs.Identity]) -> List[procfs.Identity]:
    """What the service started while it was being stopped, and left behind in a session or group of its own."""
    leaders = {identity[0] for identity in members}
    found = [item for item in procfs.everyone() if leaders & {item.session, item.group}]
    return sorted({(item.pid, item.start_ticks) for item in found} - set(members))


def _require_gone(members: List[procfs.Identity], ports: List[int]) -> None:
    left = [identity[0] for identity in members if procfs.alive(identity)]
    if left:
        raise Failure("still_held", f"processes of the service do not end: {_named(left)}", pids=left, ports=[])
    held: List[int] = []

    def free() -> bool:
        held[:] = [port for port in ports if port in procfs.listening()]
        return not held

    if not _wait(free, _AFTER_KILL):
        owners = [owner for owner in map(procfs.port_owner, held) if owner]
        message = f"ports {held} are still listened on, by {_named(owners) or 'a process that we may not see'}"
        raise Failure("still_held", message, pids=owners, ports=held)


def _require_memory(run: Run, before: Dict[str, Any], pids: List[int]) -> None:
    held: List[Dict[str, Any]] = []

    def free() -> bool:
        held[:] = gpu.held(before, gpu.read(run), pids)
        return not held

    if not _wait(free, _GPU_WAIT):
        owners = sorted({pid for item in held for pid in item["pids"]})
        raise Failure("still_held", gpu.told(held), pids=owners, ports=[], gpus=held)


def _named(pids: List[int]) -> str:
    """Processes as a person recognises them; never their arguments, which may hold secrets."""
    names = {pid: procfs.name(pid) for pid in pids}
    return ", ".join(f"{pid} ({name})" if name else str(pid) for pid, name in names.items())


def _wait(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True
