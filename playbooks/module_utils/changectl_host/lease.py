"""The right to change something on this host: one lease for the whole host, which runs out unless it is extended.

It lies in the host folder, whichever state folder its run uses. Only the clock that counts from boot decides: clocks of
controller and host may differ by hours, and be set meanwhile. Instances that share the host share the lease: RUN/1 and
RUN/2 are both of RUN.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any, Dict, List, Optional

from . import records
from .failure import Failure
from .locks import host_folder, lease_lock
from .state import FORMAT, Run, boot_id, boot_seconds, read_record, save_json, timestamp, whole

Record = Dict[str, Any]
# Of a run with several instances here. A program that knows one folder for each run would not see what is armed in
# theirs; of such a lease it says that a newer one wrote it, and keeps off.
SHARED = 2


def path() -> str:
    """Where the lease lies."""
    return os.path.join(host_folder(), "lease.json")


def present() -> Optional[Record]:
    """The lease that was given last, live or over; None when it was given back."""
    return read_record(path(), SHARED)


def save(record: Record) -> None:
    """Put a lease in force."""
    save_json(path(), {"format": FORMAT, **record})


def format_of(run: Run) -> int:
    """The format of a lease that is given to this run."""
    return SHARED if run.instance or len(run.folders()) > 1 else FORMAT


def settle(run: Run) -> None:
    """Once nothing of this run is armed any more: let programs that know one folder for each run read its lease again.

    Else they would keep off from their own runs, too, long after it is over. Needs the lease lock; nothing that fails
    here matters to whoever has brought files back.
    """
    with contextlib.suppress(Failure, OSError):
        record = present()
        if record is None or record.get("format") == FORMAT or not is_of(record, run):
            return
        if not live(record) and not armed(record):
            save({**record, "format": FORMAT})


def left(record: Record) -> float:
    """Seconds until the lease is over; 0.0: it is over."""
    if record.get("expired") or record.get("boot") != boot_id():
        return 0.0
    return max(0.0, float(record.get("deadline") or 0.0) - boot_seconds())


def live(record: Optional[Record]) -> bool:
    """Whether its owner may act."""
    return record is not None and left(record) > 0.0


def number(args: Record) -> int:
    """The generation that a call acts with."""
    generation = args.get("generation")
    if not isinstance(generation, int) or isinstance(generation, bool) or generation < 0:
        raise Failure("bad_arguments", "generation must be a whole number of at least 0")
    return generation


def nonce_of(args: Record) -> str:
    """The nonce that tells one owner of a lease from another."""
    nonce = args.get("nonce")
    if not isinstance(nonce, str) or not nonce:
        raise Failure("bad_arguments", "nonce must be a text that nobody else uses")
    return nonce


def is_of(record: Record, run: Run) -> bool:
    """Whether a lease was given to this run, in this state folder."""
    same = os.path.abspath(str(record.get("state_dir"))) == os.path.abspath(run.root)
    return bool(record.get("run") == run.whole and same)


def run_of(record: Record) -> Run:
    """The run that a lease was given to."""
    return Run(record.get("run"), record.get("state_dir"))


def armed(record: Record) -> List[Run]:
    """The folders of a lease's run whose dead-man is still to act."""
    return [run for run in run_of(record).folders() if records.armed(run) is not None]


def lost(record: Optional[Record], args: Record) -> Failure:
    """The refusal of whoever acts as if the lease were still theirs; `fired` tells what the dead-man did."""
    fired = None
    name = args.get("run")
    if record is not None and record.get("run") == whole(name):
        fired = records.fired(Run(name, record.get("state_dir")))
    elif args.get("state_dir") is not None:
        fired = records.fired(Run.of(args))
    if record is None:
        why = "nobody holds one"
    elif record.get("run") != whole(name):
        why = f"run {record.get('run')} holds it"
    elif live(record):
        why = f"generation {record.get('generation')} took it over"
    else:
        why = "it ran out"
    return Failure("lease_lost", f"run {name} has no lease on this host any more: {why}", fired=fired)


def mine(record: Optional[Record], args: Record) -> bool:
    """Whether this is the caller's lease, live or over."""
    asked = (whole(args.get("run")), number(args), nonce_of(args))
    return record is not None and (record.get("run"), record.get("generation"), record.get("nonce")) == asked


def require_mine(args: Record) -> Record:
    """The caller's live lease. Needs the lease lock.

    Raises:
        Failure: `lease_lost`.
    """
    record = present()
    if record is None or not mine(record, args) or not live(record):
        raise lost(record, args)
    return record


def extend(args: Record) -> Record:
    """The call: a new deadline, `seconds` of the lease from now: {left}.

    Raises:
        Failure: `lease_lost`.
    """
    with lease_lock():
        record = require_mine(args)
        record["deadline"] = boot_seconds() + float(record["seconds"])
        save(record)
        return {"left": left(record)}


def release(args: Record) -> Record:
    """The call: give the lease back: {released}; False: it is somebody else's by now.

    Raises:
        Failure: `armed`: the dead-man would act at once.
    """
    with lease_lock():
        record = present()
        if record is None or not mine(record, args):
            return {"released": False}
        for run in armed(record):
            message = f"run {run.name} is armed: keep its change or take it back first"
            raise Failure("armed", message)
        return {"released": records.remove(path())}


def expire(run: Run, generation: int) -> None:
    """End this run's lease, whoever owns it; one of another run stays. Needs the lease lock."""
    try:
        record = present()
    except Failure as failure:
        if failure.reason != "damaged_state":
            raise
        # Unreadable: nobody could prove that it is theirs.
        nobody = {"owner": "", "controller": "", "nonce": "", "deadline": 0.0, "seconds": 0.0}
        whose = {"format": format_of(run), "run": run.whole, "state_dir": run.root}
        record = {**whose, "boot": boot_id(), "granted_at": timestamp(), **nobody}
    if record is not None and is_of(record, run):
        save({**record, "generation": max(generation, int(record.get("generation") or 0)), "expired": True})


def require(run: Run, generation: int) -> None:
    """For changing calls: somebody who acts for this run and generation holds the host.

    Raises:
        Failure: `no_lease`; `lease_lost`.
    """
    with lease_lock():
        record = present()
    if record is None or not is_of(record, run):
        holder = "nobody does" if record is None or not live(record) else f"run {record.get('run')} does"
        raise Failure("no_lease", f"run {run.name} does not hold this host, so it may change nothing: {holder}")
    if record.get("generation") != generation or not live(record):
        raise lost(record, {"run": run.name, "generation": generation, "state_dir": run.root})
