"""A person on the host brings a run back, with no controller anywhere; and how a run stands, in words."""

from __future__ import annotations

from typing import Any, Dict, Iterator, Optional, Tuple

from . import boot_unit, firing, keeper, lease, records, restoring, whole
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
    with host_lock(run.root, _WAIT):
        # Whatever was decided before: a person decides now, and a damaged record may not stand in the way.
        armed = records.salvaged(run, records.ARMED)
        wanted = {"run": run.name, "state_dir": run.root, "only": (armed or {}).get("only")}
        if restart:
            wanted.update(_service(run, armed))
        with lease_lock():
            fired = firing.begin(run, "hand", armed)
        wanted["generation"] = fired["generation"]
        try:
            with own_right(run):
                answer = whole.bring_back(wanted) if restart else restoring.restore(wanted)
        except (Failure, OSError) as error:
            firing.fail(run, fired, error, final=True)
            raise
        fired = firing.end(run, fired, answer)
        with lease_lock():
            records.forget_armed(run, fired["nonce"])
            boot_unit.remove(run)
    keeper.ring(run)
    return fired


def _service(run: Run, armed: Optional[Record]) -> Record:
    found = firing.service_of(run, armed)
    if not found:
        raise Failure("no_manager", f"run {run.name} does not tell how its service is started: restart it yourself")
    return found


def story(run: Run) -> Iterator[str]:
    """Who holds the host, what is armed, and what was done, in words."""
    held, armed, fired, decided = _records(run)
    if held is None:
        yield "lease: nobody holds this host"
    else:
        who = (
            f"run {held.get('run')} of {held.get('owner') or 'somebody'} on {held.get('controller') or 'a controller'}"
        )
        rest = f"{lease.left(held):.0f} s left" if lease.live(held) else "it is over"
        yield f"lease: {who}, since {held.get('granted_at')}, {rest}"
    if armed is not None:
        what = ", ".join(armed.get("only") or []) or "everything that was saved"
        yield "armed: its record is damaged" if armed.get("damaged") else f"armed: since {armed.get('at')}, for {what}"
        yield f"dead-man: {_when(run, held)}"
    elif decided is not None:
        yield f"disarmed: {decided.get('outcome')}, at {decided.get('at')}"
    else:
        yield "armed: no"
    if fired is not None:
        by = {"deadman": "the dead-man", "boot": "the boot", "hand": "a person"}.get(str(fired.get("by")), "somebody")
        how = fired.get("outcome") or "not finished"
        detail = f": {fired['detail']}" if fired.get("detail") else ""
        yield f"brought back: by {by}, at {fired.get('at')}, {how}{detail}"


def _records(run: Run) -> Tuple[Optional[Record], Optional[Record], Optional[Record], Optional[Record]]:
    rest = [records.salvaged(run, name) for name in (records.FIRED, records.DISARMED)]
    return lease.present(), records.armed(run), rest[0], rest[1]


def _when(run: Run, held: Optional[Record]) -> str:
    if keeper.running(run) is None:
        return "nobody keeps watch now; restore by hand, or let a controller take the run over"
    left = lease.left(held) if held is not None and lease.is_of(held, run) else 0.0
    return f"acts in {left:.0f} s unless the lease is extended" if left else "acts now"
