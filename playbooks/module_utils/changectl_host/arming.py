"""Arm the dead-man: whoever dies, the saved configuration comes back, until a change is judged."""

from __future__ import annotations

import contextlib
from typing import Any, Dict, List, Optional, Tuple

from . import (
    boot_unit,
    keeper,
    lease,
    manager,
    program,
    records,
    restoring,
    service,
    snapshot,
    system,
    systemd,
    witness,
)
from .acting import mutating
from .failure import Failure, from_os_error
from .locks import lease_lock
from .state import Run, boot_id, timestamp

Record = Dict[str, Any]
_ROOM = 65536  # bytes kept free beside the files' own size: records, and a folder's growth
_PROCESS = "a process of its own keeps watch: it does not outlive a restart of this host, and nobody restarts it"


def arm(args: Record) -> Record:
    """The call: {armed, changed, keeper, reboot_safe, why, left}. Whoever hears "armed" is watched over.

    Args:
        args: run, generation, nonce, state_dir; `only`, `manager` and `service` as for `bring_back`, which is what
            the dead-man does, or `traffic` as for `put_back`; `head` of the journal to be kept here as a witness:
            {sequence, hash}.

    Raises:
        Failure: `lease_lost`; `not_captured`; `disarmed`: it was decided already under this lease; `no_keeper`. What
            was made is taken away again.
    """
    _check(args)
    with mutating(args) as run:
        only = _require_restorable(run, args)
        _leave_program(run)
        before, record = _record(run, args, only)
        if before is not None and before == record and record["keeper"] and keeper.running(run) is not None:
            return _answer(args, record, changed=False)
        try:
            record = _keep_watch(run, record["only"])
            # Everything that armed.json says, too: should that be damaged, the way back must not be.
            names = ("nonce", "keeper", "reboot_safe", "only", "manager", "service", "traffic")
            run.record("armed", **{name: record[name] for name in names})
            witness.add(run, "armed", args.get("head"))
        except (Failure, OSError) as error:
            _undo(run, before, record)
            raise error if isinstance(error, Failure) else from_os_error(error, f"arming run {run.name}") from error
        return _answer(args, record, changed=True)


def _check(args: Record) -> None:
    lease.nonce_of(args)
    only, served, managed = (args.get(name) for name in ("only", "service", "manager"))
    if only is not None and not (isinstance(only, list) and all(isinstance(path, str) for path in only)):
        raise Failure("bad_arguments", "only must be a list of the paths that the dead-man brings back")
    if served is not None and not isinstance(served, dict):
        raise Failure("bad_arguments", "service must be an object")
    if served and not managed:
        raise Failure("bad_arguments", "manager is missing: it is needed with service")
    if managed:
        manager.read(managed)
    witness.head_of(args.get("head"))


def _require_restorable(run: Run, args: Record) -> List[str]:
    """What could not be brought back later must not be armed now; returns the paths that are to come back."""
    saved = snapshot.manifest(run)["files"]
    only = restoring.chosen(run, saved, args)
    for path in only:
        if saved[path]["exists"]:
            snapshot.blob(run, saved[path]["sha256"])
    if args.get("service"):
        common = {"run": run.name, "state_dir": run.root, "manager": args["manager"]}
        service.require_startable({**args["service"], **common})
    return only


def _leave_program(run: Run) -> None:
    """The sleeper is this very program, not one that an older controller left."""
    path, data = run.path("program.pyz"), program.program_zip()
    try:
        with open(path, "rb") as source:
            if source.read() == data:
                return
    except FileNotFoundError:
        pass
    system.save(path, data)


def _record(run: Run, args: Record, only: List[str]) -> Tuple[Optional[Record], Record]:
    """Write armed.json; returns what was armed before, and what is now."""
    with lease_lock():
        held = lease.require_mine(args)
        if not lease.is_of(held, run):
            raise Failure("bad_arguments", f"the lease of run {run.name} is for the state folder {held['state_dir']}")
        decided = records.of(run, records.DISARMED)
        if decided is not None and decided.get("nonce") == held["nonce"]:
            message = f"run {run.name} was disarmed as {decided.get('outcome')} under this lease: take a new one"
            raise Failure("disarmed", message)
        records.adopt(run, held)
        before = records.armed(run)
        # A later part of the change may edit more files; nothing that is watched over already is let go.
        known = before or {}
        wanted: Record = {name: args.get(name) or known.get(name) for name in ("manager", "service", "traffic")}
        wanted["only"] = sorted({*only, *_watched(run, known)})
        fresh = {"run": run.name, "nonce": held["nonce"], "generation": held["generation"], "boot": boot_id(),
                 "at": timestamp(), "keeper": None, "reboot_safe": False, "why": ""}  # fmt: skip
        record = {"format": 1, **fresh, **{name: known[name] for name in known if name != "damaged"}, **wanted}
        if record != before:
            records.save(run, records.ARMED, record)
        return before, record


def _watched(run: Run, known: Record) -> List[str]:
    """The files that come back already; where no record tells any more, all that were saved."""
    unknown = known.get("damaged") and known.get("only") is None
    return list(snapshot.manifest(run)["files"] if unknown else known.get("only") or [])


def _keep_watch(run: Run, only: List[str]) -> Record:
    """See to it that somebody sleeps until the lease runs out, also over a restart of this host; note who it is."""
    saved = snapshot.manifest(run)["files"]
    records.reserve(run, _ROOM + sum(int(saved[path].get("size") or 0) for path in only))
    why = _PROCESS
    if systemd.owned():
        with lease_lock():
            armed = records.armed(run)
            if armed is not None:
                why = boot_unit.install(run, armed, [saved[path]["resolved"] for path in only])
    kept = keeper.running(run) or keeper.start(run)
    told = {"keeper": kept, "reboot_safe": not why, "why": why}
    with lease_lock():
        now = records.armed(run)
        if now is None:
            raise lease.lost(lease.present(), {"run": run.name, "state_dir": run.root})
        records.save(run, records.ARMED, {**now, **told})
        return {**now, **told}


def _undo(run: Run, before: Optional[Record], record: Record) -> None:
    """Take back what arming made, unless the dead-man acts already."""
    with lease_lock():
        if records.armed(run) is None or lease.left(lease.present() or {}) <= 0.0:
            return
        if before is not None:
            records.save(run, records.ARMED, before)
        else:
            records.forget_armed(run, record["nonce"])
            with contextlib.suppress(OSError):
                boot_unit.remove(run)  # left behind, it does nothing: nothing is armed
    if before is None:
        keeper.ring(run)


def _answer(args: Record, record: Record, changed: bool) -> Record:
    """What is true now: a lease that ran out meanwhile is the dead-man's, and nobody hears "armed"."""
    with lease_lock():
        held = lease.require_mine(args)
    return {"armed": True, "changed": changed, "keeper": record["keeper"]["kind"], "reboot_safe": record["reboot_safe"],
            "why": record["why"], "left": lease.left(held)}  # fmt: skip
