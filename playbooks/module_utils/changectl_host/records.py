"""What a run's folder tells of its dead-man: armed.json, disarmed.json, fired.json.

disarmed.json is the decision that a change stays or was taken back; armed.json may outlive it for a moment, when a call
is killed between the two. Therefore nobody reads armed.json alone.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional

from . import system
from .failure import Failure
from .state import FORMAT, Run, boot_id, read_json, save_json

Record = Dict[str, Any]
ARMED, DISARMED, FIRED = "armed.json", "disarmed.json", "fired.json"
RESERVE = "reserve"
SETTLED = ("restored", "nothing_to_do")


def read(path: str) -> Optional[Record]:
    """A record of ours; None when there is none.

    Raises:
        Failure: `damaged_state`; `newer_format` when a later version of this program wrote it.
    """
    content = read_json(path)
    if content is not None and content.get("format", FORMAT) > FORMAT:
        raise Failure("newer_format", f"{path} was written by a newer changectl: format {content['format']}")
    return content


def of(run: Run, name: str) -> Optional[Record]:
    """One of the run's three records."""
    return read(run.path(name))


def salvaged(run: Run, name: str) -> Optional[Record]:
    """As `of`; one that somebody damaged says only that it is there: {"damaged": True}."""
    try:
        return of(run, name)
    except Failure as failure:
        if failure.reason != "damaged_state":
            raise
        return {"damaged": True}


def save(run: Run, name: str, content: Record) -> None:
    """Write one of the run's records, whole or not at all."""
    save_json(run.path(name), {"format": FORMAT, **content})


def remove(path: str) -> bool:
    """Take a file of ours away for good; whether it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    system.sync_directory(os.path.dirname(path))
    return True


def armed(run: Run) -> Optional[Record]:
    """The run's armed record if its dead-man is still to act, or None.

    A damaged one is armed all the same, for everything that was saved: it may not cost the way back. Only what was
    decided has to be readable.
    """
    record = salvaged(run, ARMED)
    if record is None:
        return None
    nonce = record.get("nonce")
    disarmed, fired = of(run, DISARMED), salvaged(run, FIRED)
    if disarmed is not None and disarmed.get("nonce") == nonce:
        return None
    if fired is not None and fired.get("nonce") == nonce and done(fired):
        return None
    return record


def done(fired: Record) -> bool:
    """Whether the dead-man (or who acted in its stead) has brought the saved files back."""
    return fired.get("state") == "done" and fired.get("outcome") in SETTLED


def fired_since(run: Run, record: Record) -> Optional[Record]:
    """The way back that was begun after a run was armed, done or not; None: there is none.

    Whoever begins one takes a generation above all, and whoever arms later has one above that. `record` is armed.json.
    """
    fired = of(run, FIRED)
    if fired is None or int(fired.get("generation") or 0) <= int(_armed_by(record) or 0):
        return None
    return fired


def _armed_by(record: Record) -> Any:
    """The generation that armed a run, whoever has it now."""
    return record.get("armed_generation", record.get("generation"))


def adopt(run: Run, lease: Record) -> None:
    """Let an armed dead-man belong to a later owner of the run; it stays armed all the time."""
    record = armed(run)
    if record is not None and (record.get("nonce"), record.get("boot")) != (lease["nonce"], boot_id()):
        owner = {"nonce": lease["nonce"], "generation": lease["generation"], "boot": boot_id()}
        save(run, ARMED, {**record, **owner, "armed_generation": _armed_by(record)})


def touched(run: Run) -> bool:
    """Whether the run did anything to a file or to the service, as far as its events tell."""
    mine = ("write.intent", "restore.intent", "service.intent")
    return any(event.get("event") in mine for event in run.events())


def since_back(run: Run) -> List[Record]:
    """What was recorded since the saved files were last brought back for good, oldest first.

    A way back is done once: who writes later what the run once wrote does so as somebody else.
    """
    events, fired = run.events(), of(run, FIRED)
    # Whoever brings files back takes a generation above all before: this holds also where the event itself is missing.
    back = int(fired.get("generation") or 0) if fired is not None and done(fired) else -1
    begin = 0
    for number, event in enumerate(events, 1):
        generation = event.get("generation")
        before = isinstance(generation, int) and generation <= back
        if before or event.get("event") == "fired" or _taken_back(event):
            begin = number
    return events[begin:]


def _taken_back(event: Record) -> bool:
    return event.get("event") == "disarmed" and event.get("outcome") == "reverted"


def note_decision(run: Run, decision: Record) -> None:
    """Put a decision among the events, once."""
    nonce = decision.get("nonce")
    if any(event.get("event") == "disarmed" and event.get("nonce") == nonce for event in run.events()):
        return
    facts = {name: decision.get(name) for name in ("outcome", "nonce", "generation")}
    run.record("disarmed", **facts)


def forget_armed(run: Run, nonce: Any) -> bool:
    """Take armed.json away if it still belongs to this nonce; whether nothing is armed now. Needs the lease lock."""
    record = salvaged(run, ARMED)
    if record is not None and record.get("nonce") != nonce:
        return False
    remove(run.path(ARMED))
    free_reserve(run)
    return True


def reserve(run: Run, size: int) -> None:
    """Keep room for the way back: a disk that others fill must not stop it."""
    path = run.path(RESERVE)
    if not os.path.exists(path):
        system.save(path, bytes(size))


def free_reserve(run: Run) -> bool:
    """Give the room free that was kept; whether there was some."""
    try:
        os.unlink(run.path(RESERVE))
    except OSError:
        return False
    return True
