"""From what a host told of itself to checks: folders, attributes, temporary folder, clock, systemd."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from changectl.core.doctor.facts import Check, Facts, Folder, State, Systemd, Temporary
from changectl.core.precheck import format_bytes

ROOM = 16_000_000  # bytes: snapshots, the host program, the load generator, and what is kept free for the way back
INODES = 200
CLOCK = 60.0  # seconds; beyond, records of host and controller are hard to compare
_WORST: tuple[State, ...] = ("ok", "advice", "unknown", "failed")
_LABELS_OF_NOBODY = ("unlabeled_t", "file_t", "default_t")


def state_folder(found: Sequence[Folder]) -> Check:
    """Whether the folders of ours can be made or are there, are private, and can be written."""
    return _together([_state_folder(folder) for folder in found])


def room(found: Sequence[Folder]) -> Check:
    """Whether there is room, in bytes and in inodes."""
    return _together([_room(folder) for folder in found])


def _together(checks: Sequence[Check]) -> Check:
    """One check for several folders: the worst state, every figure."""
    worst = max(checks, key=lambda check: _WORST.index(check.state))
    todo = "\n".join(dict.fromkeys(check.todo for check in checks if check.todo))
    figure = "; ".join(dict.fromkeys(check.figure for check in checks))
    return Check(worst.name, worst.state, figure, todo, worst.required)


def _state_folder(folder: Folder) -> Check:
    system = folder.file_system or "an unknown file system"
    where = f"{folder.path} on {system}" if folder.exists else f"{folder.path} can be made, on {system}"
    if folder.problem:
        return Check(
            "state_folder", "failed", folder.problem, "mend that, or name another state_dir in the service file"
        )
    if folder.writes:
        todo = f"make room or rights there, or name another state_dir; it was tried in {folder.place}"
        return Check("state_folder", "failed", f"{folder.path}: {folder.writes}", todo)
    if folder.stale:
        return Check("state_folder", "advice", f"{where}; an earlier look left {', '.join(folder.stale)}",
                     f"take that away: {shlex.join(['rm', '-r', *folder.stale])}")  # fmt: skip
    if system in ("tmpfs", "ramfs"):
        todo = "put it on a disk: what lies there is gone after a restart of the host, and nothing comes back then"
        return Check("state_folder", "advice", where, todo)
    return Check("state_folder", "ok", f"{where}, private")


def _room(folder: Folder) -> Check:
    if folder.free is None:
        return Check("room", "unknown", f"{folder.place}: not told")
    counted = bool(folder.inodes) and folder.free_inodes is not None
    inodes = f"{folder.free_inodes} inodes" if counted else "inodes are not counted"
    figure = f"{folder.place}: {format_bytes(folder.free)} free, {inodes}"
    if folder.free < ROOM:
        return Check("room", "failed", figure, f"make room: {format_bytes(ROOM)} are needed")
    if counted and (folder.free_inodes or 0) < INODES:
        return Check("room", "failed", figure, f"remove files: {INODES} inodes are needed")
    return Check("room", "ok", figure)


def attributes(found: Sequence[Folder], selinux: str | None) -> Check:
    """Whether files there can have attributes, access lists and labels as configuration files may have."""
    lacking = [
        f"{what} on {folder.place}: {said}"
        for folder in found
        for what, said in (("attributes", folder.attributes), ("access lists", folder.acl))
        if said
    ]
    label = next((folder.label for folder in found if folder.label), None)
    security = f"SELinux {selinux}" + (f", label {label}" if label else "") if selinux else "no SELinux"
    if any(folder.attributes is None or folder.acl is None for folder in found):
        return Check("attributes", "unknown", f"not tried: nothing can be written there; {security}", required=False)
    if lacking:
        figure = f"{'; '.join(lacking)}; {security}; it matters where configuration files there have such attributes"
        return Check("attributes", "advice", figure, required=False)
    if selinux == "enforcing" and label and any(word in label for word in _LABELS_OF_NOBODY):
        todo = f"have it labelled: {shlex.join(['restorecon', '-R', found[0].place])}"
        return Check("attributes", "advice", f"attributes and access lists work; {security}", todo, required=False)
    return Check("attributes", "ok", f"attributes and access lists work; {security}", required=False)


def temporary(found: Temporary) -> Check:
    """The temporary folder: noexec is no obstacle, since nothing of ours is started from there."""
    if found.path is None:
        todo = "let /tmp be writable: programs that a service starts with may need it"
        return Check("temporary_folder", "advice", found.problem or "there is none", todo, required=False)
    noexec = "noexec, which does not matter: nothing is started from there" if "noexec" in found.options else ""
    parts = [f"{found.path} on {found.file_system or 'an unknown file system'}", noexec]
    return Check("temporary_folder", "ok", ", ".join(filter(None, parts)), required=False)


def clock(facts: Facts) -> Check:
    """How far the clocks are apart; they never decide anything."""
    if facts.clock is None:
        return Check("clock", "unknown", "not told", required=False)
    apart = abs(facts.clock)
    words = "ahead of" if facts.clock >= 0 else "behind"
    figure = f"{apart:.1f} s {words} the controller's, give or take {facts.clock_doubt:.1f} s"
    if apart - facts.clock_doubt <= CLOCK:
        return Check("clock", "ok", figure, required=False)
    todo = "set it (NTP), so that logs and records can be compared; no deadline depends on it"
    return Check("clock", "advice", figure, todo, required=False)


def systemd(found: Systemd | None, *, root: bool) -> Check:
    """Whether the dead-man can be a unit of systemd."""
    if found is None:
        figure = "this host was not booted with it: the dead-man is a process, which does not outlive a restart"
        return Check("systemd", "advice", figure)
    if found.problem or found.state is None:
        return Check("systemd", "failed", found.problem or "it does not tell its state", "see: systemctl status")
    if found.transient:
        return Check("systemd", "failed", f"{found.state}, but a unit in memory was not started: {found.transient}",
                     "see: systemd-run --wait true")  # fmt: skip
    if found.state not in ("running", "degraded"):
        todo = "wait until it is up: systemctl is-system-running --wait"
        return Check("systemd", "failed", found.state, todo)
    unit = "a unit in memory ran" if root else "not asked for a unit, since this user is not root"
    if found.state == "degraded":
        failed = ", ".join(found.failed) or "it does not say which"
        return Check("systemd", "advice", f"degraded ({failed}); {unit}", "look at those units: systemctl --failed")
    return Check("systemd", "ok", f"{found.state}; {unit}")


def reload(found: Systemd | None) -> Check:
    """Edited units that systemd has not read yet: the next reload brings them into force, whoever asks for it."""
    if found is None:
        return Check("daemon_reload", "ok", "no systemd", required=False)
    if found.reload is None:
        return Check("daemon_reload", "unknown", "systemd does not tell", required=False)
    if found.reload:
        todo = "ask whoever edited them; if all of them are meant: systemctl daemon-reload"
        return Check("daemon_reload", "advice", f"edited and not read yet: {', '.join(found.reload)}", todo,
                     required=False)  # fmt: skip
    return Check("daemon_reload", "ok", "no unit waits for it", required=False)
