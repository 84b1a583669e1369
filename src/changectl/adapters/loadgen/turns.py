"""What an open level sends when, planned before it begins: the same requests, however long the service takes."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, NamedTuple, Optional, Tuple

from changectl.adapters.loadgen.job import Item

PAUSE = 5.0  # seconds from one turn of a conversation to the next, as planned: a user reads, and writes
PAUSE_SHARE = 0.1  # of the level at most, so that its short ones have later turns, too


class Planned(NamedTuple):
    """One request of the schedule."""

    item: Item  # of a later turn without the answers that it will hold: they are not known yet
    round: int  # in which its entry was dealt
    after: Optional[int]  # the place in the schedule of the turn before it; None: it waits for no answer


def planned(schedule: List[int], workload: List[Item], seconds: float) -> List[Planned]:
    """Deal the workload over the moments of a schedule.

    A conversation's next turn takes the first moment that is a pause or more after its last one; where none is due, the
    next entry begins. Nothing here depends on the service: what a faster one would be asked more of, and a slower one
    less, could not be compared.
    """
    pause = int(min(PAUSE, PAUSE_SHARE * seconds) * 1e9)
    found: List[Planned] = []
    due: Deque[Tuple[int, int]] = deque()
    dealt = 0
    for place, moment in enumerate(schedule):
        if due and due[0][0] <= moment:
            _, before = due.popleft()
            one = Planned(found[before].item.followed(""), found[before].round, before)
        else:
            one = Planned(workload[dealt % len(workload)], dealt // len(workload), None)
            dealt += 1
        found.append(one)
        if one.item.follow_ups:
            due.append((moment + pause, place))
    return found
