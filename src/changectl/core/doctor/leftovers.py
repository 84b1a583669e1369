"""What of ours lies or runs on a host: whose it is, what of it is in the way, and how it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from changectl.core.doctor.facts import Check, Leftover
from changectl.core.precheck import format_bytes

PREFIX = "doctor-"  # how the names of a doctor's own runs begin


def leftovers(found: Sequence[Leftover], ended: Mapping[str, str]) -> Check:
    """What of ours lies or runs there, and what of it is in the way.

    Args:
        found: all that the host told.
        ended: the runs that have their end in the record, each with how it ended.
    """
    folders = [item for item in found if item.what == "run" and not item.armed and not _of_doctor(item)]
    size = format_bytes(sum(item.size for item in folders))
    kept = f"folders of runs, their way back: {len(folders)} ({size})" if folders else "no folders of runs"
    live = held(found)
    at_work = {_whole(item) for item in live}
    stuck = [item for item in found if item.armed and _whole(item) not in at_work]
    if stuck:
        todo = "\n".join(map(_how_back, stuck))
        return Check("leftovers", "failed", f"armed, and nobody is at work: {_named(stuck)}", todo)
    loose = [item for item in found if _in_the_way(item, at_work)]
    over = [item for item in live if controller_of(item) in ended]
    working = "".join(f"; {holder(item)} is at work, or ended a moment ago" for item in live if item not in over)
    if loose or over:
        todo = "\n".join([*(how_ended(item, ended) for item in over), *map(_how, loose)])
        named = _named([*loose, *over])
        return Check("leftovers", "advice", f"{named}; {kept}{working}", todo)
    return Check("leftovers", "ok", kept + working)


def held(found: Sequence[Leftover]) -> list[Leftover]:
    """The leases that are not over."""
    return [item for item in found if item.what == "lease" and item.live]


def holder(item: Leftover) -> str:
    """Who has the host."""
    return f"run {controller_of(item) or '(unknown)'} of {item.owner or 'somebody'}"


def how_ended(item: Leftover, ended: Mapping[str, str]) -> str:
    """How the run ended that still has the host; it may end with the command that settles it."""
    return f"{holder(item)} {ended[controller_of(item)]}"


def controller_of(item: Leftover) -> str:
    """The run that took a lease, as the record calls it: the folder on the host has the step behind it."""
    run = _whole(item)
    return item.controller or run.rpartition(".")[0] or run


def _whole(item: Leftover) -> str:
    """The run that holds the host: what is of one of several instances there has that one's number behind it."""
    return (item.run or "").partition("/")[0]


def _how_back(item: Leftover) -> str:
    """How an armed run is brought back; its controller calls it by the folder's name without the step."""
    _, program, rest = item.how.rpartition("python3 ")
    by_hand = f"on the host itself: {program}{rest}" if program else item.how or "see docs/how-to/restore-by-hand.md"
    if _of_doctor(item):
        return f"{item.run}: {by_hand}\nthen: rm -r {item.place}"
    return f"{item.run}: changectl recover {controller_of(item)}\nor {by_hand}"


def _of_doctor(item: Leftover) -> bool:
    return (item.run or "").startswith(PREFIX)


def _in_the_way(item: Leftover, at_work: set[str]) -> bool:
    if item.run is not None and _whole(item) in at_work:
        return False
    if item.what == "run":
        return _of_doctor(item)
    return item.what != "lease" or not item.removable


def _how(item: Leftover) -> str:
    how = f"rm -r {item.place}" if item.what == "run" and _of_doctor(item) else item.how
    return f"{item.place}: {how}"


def _named(items: Sequence[Leftover]) -> str:
    owned = (f"{item.what} {item.place}" + (f" of run {item.run}" if item.run else "") for item in items)
    return ", ".join(owned)
