"""What a run's folder tells of its dead-man: armed.json, disarmed.json, fired.json.

disarmed.json is the decision that a change stays or was taken back; armed.json may outlive it for a moment, when a call
is killed between the two. Therefore nobody reads armed.json alone.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List, Optional, Tuple

from . import rebuilt, system
from .failure import Failure
from .state import FORMAT, Run, boot_id, read_record, save_json

Record = Dict[str, Any]
ARMED, DISARMED, FIRED = "armed.json", "disarmed.json", "fired.json"
NAMES = (ARMED, DISARMED, FIRED)
RESERVE = "reserve"
SETTLED = ("restored", "nothing_to_do")
_NONE = type(None)
_WHOLE: Dict[str, Tuple[Tuple[str, Any], ...]] = {  # what each of them always has
    ARMED: (("nonce", str), ("only", (list, _NONE)), ("manager", (dict, _NONE)), ("service", (dict, _NONE))),
    DISARMED: (("nonce", str), ("outcome", str)),
    FIRED: (("state", str), ("generation", int)),
}


def of(run: Run, name: str) -> Optional[Record]:
    """One of the run's three records.

    Raises:
        Failure: `damaged_state` also where it lacks what every one of them has; `newer_format`.
    """
    content = read_record(run.path(name))
    if content is not None and not all(isinstance(content.get(key), kind) for key, kind in _WHOLE[name]):
        raise Failure("damaged_state", f"{run.path(name)} is not a whole record")
    return content


def _readable(run: Run, name: str) -> Tuple[bool, Optional[Record]]:
    """Whether one of the run's records is whole (or not there), and it."""
    try:
        return True, of(run, name)
    except Failure as failure:
        if failure.reason != "damaged_state":
            raise
        return False, None


def is_damaged(run: Run, name: str) -> bool:
    """Whether somebody damaged one of the run's three records."""
    return not _readable(run, name)[0]


def fired(run: Run) -> Optional[Record]:
    """What was brought back last, or is being brought back; of a damaged record, what the events tell."""
    whole, found = _readable(run, FIRED)
    return found if whole else rebuilt.fired(run)


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

    A damaged one may not cost the way back: what the events tell of it is armed. Only the decision itself has to be
    readable.
    """
    disarmed = of(run, DISARMED)
    whole, found = _readable(run, ARMED)
    if not whole:
        return _armed_by_events(run, disarmed)
    if found is None:
        return None
    nonce = found.get("nonce")
    if disarmed is not None and disarmed.get("nonce") == nonce:
        return None
    back = fired(run)
    return None if back is not None and back.get("nonce") == nonce and done(back) else found


def _armed_by_events(run: Run, disarmed: Optional[Record]) -> Optional[Record]:
    record, back = rebuilt.armed(run), fired(run)
    over = back is not None and done(back) and rebuilt.overtaken(record, back)
    return None if over or rebuilt.overtaken(record, disarmed) else record


def done(back: Record) -> bool:
    """Whether the dead-man (or who acted in its stead) has brought the saved files back."""
    return back.get("state") == "done" and back.get("outcome") in SETTLED


def fired_since(run: Run, record: Record) -> Optional[Record]:
    """The way back that was begun after a run was armed, done or not; None: there is none.

    Whoever begins one takes a generation above all, and whoever arms later has one above that. `record` is armed.json.
    """
    back = fired(run)
    if back is None or int(back.get("generation") or 0) <= int(_armed_by(record) or 0):
        return None
    return back


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
    mine = ("write.intent", "restore.intent", "service.intent", "switch.intent")
    return any(event.get("event") in mine for event in run.events())


def since_back(run: Run) -> List[Record]:
    """What was recorded since the saved files were last brought back for good, oldest first.

    A way back is done once: who writes later what the run once wrote does so as somebody else.
    """
    events, last = run.events(), fired(run)
    # Whoever brings files back takes a generation above all before: this holds also where the event itself is missing.
    back = int(last.get("generation") or 0) if last is not None and done(last) else -1
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
    """Take armed.json away if it still belongs to this nonce; whether nothing is armed now. Needs the lease lock.

    A damaged one belongs to nobody else: under the lock only the owner of the lease, or who acts instead, comes here.
    """
    _, record = _readable(run, ARMED)
    if record is not None and record.get("nonce") != nonce:
        return False
    remove(run.path(ARMED))
    free_reserve(run)
    return True


def set_aside(run: Run, name: str) -> None:
    """Move a damaged record out of the way, once a person has decided instead."""
    if is_damaged(run, name):
        os.replace(run.path(name), run.path(f"{name}.damaged"))


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
