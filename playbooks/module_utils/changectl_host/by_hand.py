"""A person on the host brings a run back, with no controller anywhere; and how a run stands, in words."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional

from . import boot_unit, firing, keeper, lease, rebuilt, records, restoring, snapshot, switching, whole
from .acting import own_right
from .failure import Failure
from .locks import host_lock, lease_lock
from .state import Run

Record = Dict[str, Any]
_WAIT = 300.0  # seconds; a change in progress, for instance a stop, is waited for


def restore(run: Run, restart: bool) -> Record:
    """Take the run over and bring its saved files back; returns the record of it.

    Args:
        run: the run.
        restart: also stop the service before and start it after, unless it runs on the saved files already.

    Raises:
        Failure: as `bring_back`; `no_manager`: nothing here tells how the service is started. It stays armed then.
    """
    snapshot.manifest(run)  # where nothing was saved, nobody's lease is ended
    with host_lock(run.root, _WAIT):
        armed = _armed(run)
        wanted = {"run": run.name, "state_dir": run.root, "only": (armed or {}).get("only")}
        traffic = (armed or {}).get("traffic")
        if restart and not traffic:
            wanted.update(_service(run, armed))
        with lease_lock():
            fired = firing.begin(run, "hand", armed)
        wanted["generation"] = fired["generation"]
        try:
            with own_right(run):
                if traffic:  # a person has seen whether the member answers
                    answer = switching.put_back({**wanted, "traffic": traffic, "unasked": True})
                else:
                    answer = whole.bring_back(wanted) if restart else restoring.restore(wanted)
        except (Failure, OSError) as error:
            firing.fail(run, fired, error, final=True)
            raise
        fired = firing.end(run, fired, answer)
        with lease_lock():
            records.forget_armed(run, fired["nonce"])
            records.set_aside(run, records.DISARMED)
            boot_unit.remove(run)
            lease.settle(run)
    keeper.ring(run)
    return fired


def _armed(run: Run) -> Optional[Record]:
    """What is armed. A decision that cannot be read any more stands in nobody's way here: a person decides now."""
    if not records.is_damaged(run, records.DISARMED):
        return records.armed(run)
    return rebuilt.armed(run) if records.is_damaged(run, records.ARMED) else records.of(run, records.ARMED)


def _service(run: Run, armed: Optional[Record]) -> Record:
    found = firing.service_of(run, armed)
    if not found:
        raise Failure("no_manager", f"run {run.name} does not tell how its service is started: restart it yourself")
    return found


def story(run: Run) -> Iterator[str]:
    """Who holds the host, what is armed, and what was done, in words."""
    held, armed, fired = lease.present(), _armed(run), records.fired(run)
    if held is None:
        yield "lease: nobody holds this host"
    else:
        who = (
            f"run {held.get('run')} of {held.get('owner') or 'somebody'} on {held.get('controller') or 'a controller'}"
        )
        rest = f"{lease.left(held):.0f} s left" if lease.live(held) else "it is over"
        yield f"lease: {who}, since {held.get('granted_at')}, {rest}"
    yield from (_damaged(name) for name in records.NAMES if records.is_damaged(run, name))
    if armed is not None:
        what = ", ".join(armed.get("only") or []) or "everything that was saved"
        yield f"armed: since {armed.get('at')}, for {what}"
        yield f"dead-man: {_when(run, held)}"
    elif not records.is_damaged(run, records.DISARMED):
        decided = records.of(run, records.DISARMED)
        yield "armed: no" if decided is None else f"disarmed: {decided.get('outcome')}, at {decided.get('at')}"
    if fired is not None:
        by = {"deadman": "the dead-man", "boot": "the boot", "hand": "a person"}.get(str(fired.get("by")), "somebody")
        how = fired.get("outcome") or "not finished"
        detail = f": {fired['detail']}" if fired.get("detail") else ""
        yield f"brought back: by {by}, at {fired.get('at') or 'an unknown time'}, {how}{detail}"


def _damaged(name: str) -> str:
    return f"{name}: damaged; what the events tell stands here instead"


def _when(run: Run, held: Optional[Record]) -> str:
    if keeper.running(run) is None:
        return "nobody keeps watch now; restore by hand, or let a controller take the run over"
    if records.is_damaged(run, records.DISARMED):
        return "it cannot read what was decided, so it does not act; restore by hand"
    left = lease.left(held) if held is not None and lease.is_of(held, run) else 0.0
    return f"acts in {left:.0f} s unless the lease is extended" if left else "acts now"
