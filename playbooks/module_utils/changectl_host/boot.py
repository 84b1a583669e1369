"""At boot: bring back the files of a change that nobody judged, before the service starts, and start nothing."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Dict, Optional

from . import boot_unit, firing, keeper, lease, records, restoring, systemd
from .acting import own_right
from .failure import Failure
from .locks import host_lock, lease_lock
from .state import Run, boot_id

Record = Dict[str, Any]
_WAIT = 120.0  # seconds; nobody else should hold the lock this early


def boot(args: Record) -> int:
    """The action of the program; the exit status: 0 done or nothing to do, 3 the files are not back."""
    fired = at_boot(Run.of(args), boot_id(), _reload, keeper.begin)
    return 0 if fired is None or records.done(fired) else 3


def at_boot(run: Run, now: str, settle: Callable[[], None], watch: Callable[[Run], None]) -> Optional[Record]:
    """Bring the saved files back if they were armed before this boot; returns the record of it, None: not our turn.

    Args:
        run: the run that the boot unit names.
        now: the name of this boot.
        settle: lets the host read its units anew: once the files are back, and once more when our own unit is gone.
            The way back is done only after the first.
        watch: lets the dead-man keep watch, when the files could not be brought back: it tries again. Also where it
            puts a member of a balancer back, which it does once the member answers.

    Raises:
        Failure: the host lock is not to be had, or a record cannot be read or written. The dead-man keeps watch then.
    """
    try:
        fired = _at_boot(run, now, settle, watch)
    except (Failure, OSError):
        watch(run)
        raise
    if fired is not None and not records.done(fired):
        watch(run)
    return fired


def _at_boot(run: Run, now: str, settle: Callable[[], None], watch: Callable[[Run], None]) -> Optional[Record]:
    with host_lock(run.root, _WAIT):
        with lease_lock():
            armed = records.armed(run)
            if armed is None:
                boot_unit.remove(run)  # left behind by a call that was killed
                return None
            if armed.get("boot") == now:
                return None
            if not armed.get("traffic"):
                fired = firing.begin(run, "boot", armed)
        if armed.get("traffic"):
            watch(run)  # whether the member answers cannot be known before there is a network: the dead-man sees to it
            return None
        try:
            with own_right(run):
                answer = _restore(run, armed, fired["generation"])
            settle()  # else the service would start on the unit as it was before the files came back
        except (Failure, OSError) as error:
            return firing.fail(run, fired, error, final=True)
        fired = firing.end(run, fired, answer)
        with lease_lock():
            if records.forget_armed(run, armed.get("nonce")):
                boot_unit.remove(run)
                lease.settle(run)
        with contextlib.suppress(Failure, OSError):
            settle()  # what it forgets now is only our own unit
        return fired


def _restore(run: Run, armed: Record, generation: int) -> Record:
    if run.events() and not records.touched(run):  # a list that is gone may have held anything
        return {"changed": False, "files": {}}
    wanted = {"run": run.name, "generation": generation, "state_dir": run.root, "only": armed.get("only")}
    return restoring.restore(wanted)


def _reload() -> None:
    """Let systemd read the units that came back; it has just read all others, so that puts nobody's edit into force.

    Raises:
        Failure: `not_reloaded`.
    """
    if not systemd.owned():
        return
    done = systemd.systemctl({}, "daemon-reload", timeout=60)
    if done.status:
        raise Failure("not_reloaded", f"systemctl daemon-reload: {done.err.strip()[-500:]}")
