"""Disarm the dead-man: a change is judged, or taken back, and nothing is brought back any more."""

from __future__ import annotations

import errno
from typing import Any, Dict, List, Optional

from . import boot_unit, keeper, lease, records, witness
from .failure import Failure
from .locks import lease_lock
from .state import Run, timestamp, whole

Record = Dict[str, Any]
OUTCOMES = ("kept", "reverted", "accepted")


def disarm(args: Record) -> Record:
    """The call: the change is judged, nothing is brought back any more: {disarmed, changed, left_behind}.

    Raises:
        Failure: `lease_lost` with `fired` in the details: what the dead-man did, or what it has begun to do.
    """
    outcome = args.get("outcome")
    if outcome not in OUTCOMES:
        raise Failure("bad_arguments", f"outcome must be one of {', '.join(OUTCOMES)}, not {outcome!r}")
    witness.head_of(args.get("head"))
    with lease_lock():
        held = lease.present()
        run = _run_of(args, held)
        decided = records.of(run, records.DISARMED)
        again = decided is not None and decided.get("nonce") == lease.nonce_of(args)
        if not again:
            held = lease.require_mine(args)
            records.adopt(run, held)
            armed = records.armed(run)
            if armed is None:
                return {"disarmed": False, "changed": False, "left_behind": []}
            _require_unfired(run, armed, outcome)
            facts = {name: held[name] for name in ("nonce", "generation")}
            decision = {**facts, "run": run.name, "outcome": outcome, "at": timestamp(), "head": args.get("head")}
            _decide(run, decision)
            decided = decision
        behind = _take_away(run, args, decided or {}, again)
    if not keeper.ring(run):
        behind.append(f"the sleeper of run {run.name} still runs; it ends as soon as it looks")
    return {"disarmed": True, "changed": not again, "left_behind": behind}


def _require_unfired(run: Run, armed: Record, outcome: str) -> None:
    """Nobody may hear that a change stays whose way back has begun: what was saved is in force then, or half of it.

    A later owner's lease does not stop a try that goes on. One that has failed is not followed by another while that
    lease lives, so that a person may accept what it left.

    Raises:
        Failure: `lease_lost`.
    """
    fired = records.fired_since(run, armed)
    if fired is None or outcome == "reverted" or (outcome == "accepted" and fired.get("outcome") == "failed"):
        return
    how = f"ended as {fired['outcome']}" if fired.get("outcome") else "goes on"
    message = f"run {run.name} cannot be recorded as {outcome}: the way back to its saved files began at "
    message += f"{fired.get('at')} and {how}; bring it back, and record it as reverted"
    raise Failure("lease_lost", message, fired=fired)


def _decide(run: Run, decision: Record) -> None:
    """Write the decision; on a full disk with the room that was kept for a way back, which it makes needless."""
    try:
        records.save(run, records.DISARMED, decision)
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT) or not records.free_reserve(run):
            raise
        records.save(run, records.DISARMED, decision)


def _run_of(args: Record, held: Optional[Record]) -> Run:
    if held is not None and held.get("run") == whole(args.get("run")) and args.get("state_dir") is None:
        return Run(args.get("run"), held.get("state_dir"))
    return Run.of(args)


def _take_away(run: Run, args: Record, decided: Record, again: bool) -> List[str]:
    """After the decision: nothing that fails here changes it."""
    behind: List[str] = []
    try:
        records.forget_armed(run, lease.nonce_of(args))
        records.note_decision(run, decided)
        boot_unit.remove(run)
        if not again:
            witness.add(run, "disarmed", args.get("head"))
    except (Failure, OSError) as error:
        behind.append(f"{run.folder}: {error}")
    return behind
