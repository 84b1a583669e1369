"""Everything of ours that lies or runs on this host: whose it is, and whether and how it can be taken away."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Optional

from . import boot_unit, lease, locks, procfs, records, systemd, writes
from .failure import Failure
from .state import Run

Record = Dict[str, Any]


def leftovers(args: Record) -> Record:
    """The call: {items: [{what, place, run, removable, how, ...}]}.

    `what` is run, lease, temporary, boot_unit, sleeper or sleeper_unit. `removable`: nothing needs it any more, so that
    it may be taken away now; `how` says by what, or what has to be done before.
    """
    root = args.get("state_dir") or locks.default_root()
    items = [*_lease(), *_of_runs(root)]
    for name in _folders(os.path.join(locks.host_folder(), locks.UPSTREAMS)):
        with locks.of_upstream(name) as folder:
            items += [*_lease(), *_of_runs(folder)]
    units = [item for unit in boot_unit.all_names() for item in _unit(unit)]
    return {"items": [*items, *units, *_sleepers(), *_sleeper_units()]}


def _of_runs(root: str) -> Iterator[Record]:
    for run in _runs(root):
        yield from _run(run)
        yield from _temporaries(run)


def _item(what: str, place: str, run: Optional[str], removable: bool, how: str, **facts: Any) -> Record:
    return {"what": what, "place": place, "run": run, "removable": removable, "how": how, **facts}


def _runs(root: str) -> Iterator[Run]:
    """Every folder of a run, those of its instances included."""
    for name in _folders(os.path.join(root, "runs")):
        try:
            found = Run(name, root).folders()
        except Failure:
            continue  # not a name of ours
        yield from (run for run in found if run.exists())


def _folders(base: str) -> List[str]:
    try:
        return sorted(entry.name for entry in os.scandir(base) if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _lease() -> Iterator[Record]:
    try:
        held = lease.present()
    except Failure as failure:
        yield _item("lease", lease.path(), None, False, failure.message)
        return
    if held is None:
        return
    run, live = held.get("run"), lease.live(held)
    facts = {"owner": held.get("owner"), "controller": held.get("controller"), "live": live, "left": lease.left(held)}
    if live:
        yield _item("lease", lease.path(), run, False, f"wait for the end of run {run}, or take it over", **facts)
    elif armed := lease.armed(held):
        yield _item("lease", lease.path(), run, False, f"bring run {armed[0].name} back first", **facts)
    else:
        yield _item("lease", lease.path(), run, True, "the next run takes it", **facts)


def _run(run: Run) -> Iterator[Record]:
    facts: Record = {"size": _size(run.folder), "state": _state(run), "armed": False}
    try:
        facts["armed"] = records.armed(run) is not None
    except Failure as failure:
        yield _item("run", run.folder, run.name, False, failure.message, **facts)
        return
    if facts["armed"]:
        how = f"bring it back first: python3 {run.path('program.pyz')} restore --restart"
        yield _item("run", run.folder, run.name, False, how, **facts)
    else:
        how = "forget, once this run is never to be taken back: its snapshot is the way back"
        yield _item("run", run.folder, run.name, not _held(run), how, **facts)


def _held(run: Run) -> bool:
    try:
        held = lease.present()
    except Failure:
        return True
    return held is not None and lease.live(held) and lease.is_of(held, run)


def _state(run: Run) -> str:
    """The last thing that was recorded."""
    events = run.events()
    return str(events[-1].get("event")) if events else "empty"


def _size(folder: str) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue
    return total


def _temporaries(run: Run) -> Iterator[Record]:
    """Prepared files that a killed call left beside configuration files."""
    for event, place in writes.left_behind(run):
        yield _temporary(run, event, place)


def _temporary(run: Run, event: Record, place: str) -> Record:
    """Only a copy of what the run read or wrote may go; other bytes are somebody's edit, and perhaps the only copy."""
    try:
        ours = writes.is_ours(run, event, place)
    except Failure as failure:
        return _item("temporary", place, run.name, False, failure.message)
    if ours:
        return _item("temporary", place, run.name, not _held(run), "cleanup")
    how = f"it is somebody else's edit: compare it with {event.get('resolved')}, and move it back there"
    return _item("temporary", place, run.name, False, how)


def _unit(unit: str) -> Iterator[Record]:
    owner = boot_unit.owner(unit=unit)
    if owner is None:
        return
    name, _, root = owner.partition(" in ")
    place = os.path.join(boot_unit.FOLDER, unit)
    try:
        armed = records.armed(Run(name, root)) is not None
    except Failure as failure:
        yield _item("boot_unit", place, name, False, failure.message)
        return
    link = f"{boot_unit.FOLDER}/sysinit.target.wants/{unit}"
    how = f"bring run {name} back first" if armed else f"rm {place} {link}"
    yield _item("boot_unit", place, name, not armed, how)


def _sleepers() -> Iterator[Record]:
    """Processes that keep watch, whichever state folder their run uses."""
    for process in procfs.everyone():
        run = _watched(process.pid)
        if run is not None:
            yield _sleeper("sleeper", str(process.pid), run, f"kill {process.pid}")


def _watched(pid: int) -> Optional[Run]:
    """The run over which a process keeps watch; None: it is no sleeper of ours."""
    words = procfs.argv(pid)
    if "deadman" not in words or not any(word.endswith("/program.pyz") for word in words):
        return None
    told = {name: words[words.index(name) + 1] for name in ("--run", "--state-dir") if name in words[:-1]}
    try:
        return Run(told.get("--run"), told.get("--state-dir"))
    except Failure:
        return None


def _sleeper(what: str, place: str, run: Run, how: str) -> Record:
    try:
        armed = records.armed(run) is not None
    except Failure as failure:
        return _item(what, place, run.name, False, failure.message)
    return _item(what, place, run.name, not armed, f"bring run {run.name} back first" if armed else how)


def _sleeper_units() -> Iterator[Record]:
    if not systemd.owned():
        return
    listed = systemd.systemctl({}, "list-units", "--all", "--plain", "--no-legend", "changectl-deadman-*.service")
    for unit in (line.split()[0] for line in listed.out.splitlines() if line.split()):
        pid = systemd.systemctl({}, "show", "--value", "--property=MainPID", unit).out.strip()
        run = _watched(int(pid)) if pid.isdigit() and int(pid) else None
        if run is not None:
            yield _sleeper("sleeper_unit", unit, run, f"systemctl stop {unit}")
        else:
            # It is just started again, or holds only what it started, for instance the service itself.
            yield _item("sleeper_unit", unit, None, False, "it goes when nothing runs in it any more")
