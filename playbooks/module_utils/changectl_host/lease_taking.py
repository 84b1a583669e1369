"""Taking the lease of this host: whose turn it is, and when nobody may have it yet."""

from __future__ import annotations

import errno
from typing import Any, Dict

from . import lease, records
from .failure import Failure
from .locks import lease_lock
from .state import Run, boot_id, boot_seconds, timestamp

Record = Dict[str, Any]
_LONGEST = 7 * 86400.0  # seconds


def take(args: Record) -> Record:
    """The call `lease`: {generation, nonce, left, taken_over}.

    Args:
        args: run, generation, state_dir; owner and controller (for people to read); seconds; nonce.

    Raises:
        Failure: `held` by another run; `armed_by_other`: its lease is over, but its files are not back yet;
            `stale_generation`: the run has a later owner; `lease_lost`: it is over, and the dead-man acts.
    """
    run = Run.of(args)
    wanted = _wanted(args, run)
    with lease_lock():
        before = lease.present()
        own = before if before is not None and lease.is_of(before, run) else None
        if own is not None:
            _require_newer(own, run, wanted)
        elif before is not None:
            _require_free(before)
        _require_current(run, wanted)
        renewed = own is not None and own["nonce"] == wanted["nonce"]
        if own is not None and renewed:
            wanted["granted_at"] = own["granted_at"]
        wanted["deadline"] = boot_seconds() + wanted["seconds"]
        lease.save(wanted)
        for one in run.folders():
            if one.exists():
                _adopt(one, wanted)
    over = None if renewed or before is None else _who(before)
    return {
        "generation": wanted["generation"],
        "nonce": wanted["nonce"],
        "left": lease.left(wanted),
        "taken_over": over,
    }


def _adopt(run: Run, wanted: Record) -> None:
    """Hand what is armed over to the new owner; on a full disk with the room that was kept for the way back."""
    try:
        records.adopt(run, wanted)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not records.free_reserve(run):
            raise
        records.adopt(run, wanted)


def _wanted(args: Record, run: Run) -> Record:
    seconds = args.get("seconds")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _LONGEST:
        raise Failure("bad_arguments", f"seconds must be a number above 0 and at most {_LONGEST:.0f}, not {seconds!r}")
    return {
        "format": lease.format_of(run),
        "run": run.whole,
        "state_dir": run.root,
        "owner": str(args.get("owner") or ""),
        "controller": str(args.get("controller") or ""),
        "generation": lease.number(args),
        "nonce": lease.nonce_of(args),
        "seconds": float(seconds),
        "granted_at": timestamp(),
        "boot": boot_id(),
        "expired": False,
    }


def _who(record: Record) -> Record:
    told = {name: record.get(name) for name in ("run", "owner", "controller")}
    return {**told, "since": record.get("granted_at")}


def _require_free(before: Record) -> None:
    """Another run's lease: neither live, nor with files of that run still in place."""
    owner = f"{before.get('owner') or 'somebody'} on {before.get('controller') or 'a controller'}"
    who = f"run {before.get('run')} of {owner}"
    if lease.live(before):
        message = f"this host is held by {who} since {before.get('granted_at')}: {lease.left(before):.0f} s left"
        raise Failure("held", message, **_who(before), left=lease.left(before))
    for run in lease.armed(before):
        by_hand = f"python3 {run.path('program.pyz')} restore --restart"
        message = f"the lease of {who} is over, but what it changed is not brought back yet; it lies in {run.folder}"
        message += f". Its dead-man on this host does that, and so does: {by_hand}"
        facts = {name: before.get(name) for name in ("run", "owner", "controller")}
        raise Failure("armed_by_other", message, **facts, folder=run.folder)


def _require_newer(before: Record, run: Run, wanted: Record) -> None:
    if wanted["generation"] > before["generation"]:
        return
    if (wanted["generation"], wanted["nonce"]) != (before["generation"], before["nonce"]):
        raise _stale(run, before["generation"], wanted["generation"])
    if not lease.live(before) and (before.get("expired") or lease.armed(before)):
        raise lease.lost(before, wanted)  # whoever comes back late must see first what the dead-man does


def _require_current(run: Run, wanted: Record) -> None:
    """Nobody may come back with a generation that a folder of the run has shut out."""
    for one in run.folders():
        seen = one.header().get("generation", 0)
        fired = records.fired(one) or {}
        # Of a damaged record the run's own number has to do, which was raised before.
        back = -1 if fired.get("damaged") else fired.get("generation", -1)
        if wanted["generation"] < seen or wanted["generation"] <= back:
            raise _stale(one, max(seen, back), wanted["generation"])


def _stale(run: Run, seen: int, generation: int) -> Failure:
    message = f"run {run.name} was taken over by generation {seen}; generation {generation} may not act any more"
    return Failure("stale_generation", message, generation=seen)
