"""The part of a file that a run changed: it can go back also where somebody else has changed the rest since."""

from __future__ import annotations

import contextlib
from typing import Iterable, List, Optional, Tuple

from . import records, snapshot
from .failure import Failure
from .state import Run

Lines = List[bytes]
IN_FORCE, BACK, LOST = "in_force", "back", "lost"


def changed(old: bytes, new: bytes) -> Tuple[Lines, Lines]:
    """The lines in which two files differ, with as many neighbours as make them unmistakable in both."""
    before, after = old.splitlines(keepends=True), new.splitlines(keepends=True)
    shorter = min(len(before), len(after))
    head = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    tail = next((at for at in range(shorter - head) if before[-1 - at] != after[-1 - at]), shorter - head)
    for neighbours in range(max(len(before), len(after)) + 1):
        first, last = max(0, head - neighbours), max(0, tail - neighbours)
        parts = before[first : len(before) - last], after[first : len(after) - last]
        if len(_places(before, parts[0])) == 1 and len(_places(after, parts[1])) == 1:
            return parts
    return before, after


def standing(old: bytes, new: bytes, present: bytes) -> str:
    """What became of a run's part: in force, back already, or lost: changed, or not to be told from other lines."""
    lines = present.splitlines(keepends=True)
    was, ours = (len(_places(lines, part)) for part in changed(old, new))
    if ours == 1:
        return IN_FORCE
    return BACK if ours == 0 and was == 1 else LOST


def put_back(old: bytes, new: bytes, present: bytes) -> bytes:
    """The present bytes with the old part in place of ours, which must be in force."""
    lines = present.splitlines(keepends=True)
    was, ours = changed(old, new)
    (place,) = _places(lines, ours)
    return b"".join([*lines[:place], *was, *lines[place + len(ours) :]])


def _places(lines: Lines, wanted: Lines) -> List[int]:
    """Where a sequence of lines begins; nowhere, when it has none."""
    if not wanted:
        return []
    return [at for at in range(len(lines) - len(wanted) + 1) if lines[at : at + len(wanted)] == wanted]


def last_written(run: Run, resolved: str) -> Optional[bytes]:
    """The bytes that the run wrote to a file last, since that was last brought back; None: none, or not kept."""
    return _last(run, resolved, records.since_back(run))


def once_written(run: Run, resolved: str) -> Optional[bytes]:
    """As `last_written`, also from before: it tells whether the part is back, and never what may be taken back."""
    return _last(run, resolved, run.events())


def _last(run: Run, resolved: str, events: Iterable[records.Record]) -> Optional[bytes]:
    digests = [
        str(event["sha256"])
        for event in events
        if event.get("event") == "write.intent" and event.get("resolved") == resolved
    ]
    for source in (snapshot.blob, snapshot.staged):
        with contextlib.suppress(Failure):
            return source(run, digests[-1]) if digests else None
    return None
