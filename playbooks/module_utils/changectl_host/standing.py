"""How things stand with the lease of this host and with a run's dead-man; nothing is changed."""

from __future__ import annotations

from typing import Any, Dict, Optional, Tuple

from . import keeper, lease, records, systemd
from . import witness as seen
from .state import Run, boot_id, boot_seconds, read_lines

Record = Dict[str, Any]


def standing(args: Record) -> Record:
    """The call: {lease, armed, disarmed, fired, touched, generation, seen, boot, boot_seconds, keeper_running}.

    `lease` is the host's, whichever run holds it; the rest is the folder's. `seen`: the highest generation of all
    folders of the run here. `keeper_running`: None when nothing is armed.
    """
    run = Run.of(args)
    held = lease.present()
    armed, disarmed, fired = _at_one_moment(run)
    return {
        "lease": None if held is None else _told(held),
        "armed": armed,
        "disarmed": disarmed,
        "fired": fired,
        "touched": run.exists() and records.touched(run),
        "generation": run.header().get("generation"),
        "seen": max(int(one.header().get("generation") or 0) for one in run.folders()),
        "boot": boot_id(),
        "boot_seconds": boot_seconds(),
        "keeper_running": None if armed is None else _watched(run, armed),
    }


def _at_one_moment(run: Run) -> Tuple[Optional[Record], Optional[Record], Optional[Record]]:
    """What is armed, decided and brought back; a dead-man that acts meanwhile must not make them contradict."""
    while True:
        decided, back = records.of(run, records.DISARMED), records.fired(run)
        armed = records.armed(run)
        if (decided, back) == (records.of(run, records.DISARMED), records.fired(run)):
            return armed, decided, back


def _watched(run: Run, armed: Record) -> bool:
    if keeper.running(run) is not None:
        return True
    unit = (armed.get("keeper") or {}).get("unit")
    if not unit or not systemd.owned():
        return False
    # Killed, it is started again in a moment.
    state = systemd.systemctl({}, "show", "--value", "--property=ActiveState", unit).out.strip()
    return state in ("active", "activating")


def _told(held: Record) -> Record:
    facts = {name: held.get(name) for name in ("run", "owner", "controller", "generation", "nonce", "state_dir")}
    rest: Optional[float] = lease.left(held)
    return {**facts, "since": held.get("granted_at"), "left": rest, "live": lease.live(held)}


def witness(_: Record) -> Record:
    """The call: the journals' heads that were left here when runs were armed and disarmed: {heads: [...]}."""
    wanted = ("at", "run", "what", "sequence", "hash")
    lines = [line for path in seen.paths() for line in read_lines(path)]
    return {"heads": [{name: line.get(name) for name in wanted} for line in lines]}
