"""What of ours lies or runs on a host: whose it is, what of it is in the way, and how it goes."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.doctor_facts import Check, Leftover
from changectl.core.precheck import format_bytes

PREFIX = "doctor-"  # how the names of a doctor's own runs begin


def leftovers(found: Sequence[Leftover]) -> Check:
    """What of ours lies or runs there, and what of it is in the way."""
    folders = [item for item in found if item.what == "run" and not item.armed and not _of_doctor(item)]
    size = format_bytes(sum(item.size for item in folders))
    kept = f"folders of runs, their way back: {len(folders)} ({size})" if folders else "no folders of runs"
    live = [item for item in found if item.what == "lease" and item.live]
    at_work = {item.run for item in live}
    stuck = [item for item in found if item.armed and item.run not in at_work]
    if stuck:
        todo = "; ".join(map(_how_back, stuck))
        return Check("leftovers", "failed", f"armed, and nobody is at work: {_named(stuck)}", todo)
    loose = [item for item in found if _in_the_way(item, at_work)]
    working = "".join(f"; {item.run} of {item.owner or 'somebody'} is at work" for item in live)
    if loose:
        return Check("leftovers", "advice", f"{_named(loose)}; {kept}{working}", "; ".join(map(_how, loose)))
    return Check("leftovers", "ok", kept + working)


def _how_back(item: Leftover) -> str:
    """How an armed run is brought back; its controller calls it by the folder's name without the step."""
    by_hand = item.how or "see docs/how-to/restore-by-hand.md"
    if _of_doctor(item):
        return f"{item.run}: {by_hand}; then rm -r {item.place}"
    run = (item.run or "").partition("/")[0]
    return f"{item.run}: changectl recover {run.rpartition('.')[0] or run}, or {by_hand}"


def _of_doctor(item: Leftover) -> bool:
    return (item.run or "").startswith(PREFIX)


def _in_the_way(item: Leftover, at_work: set[str | None]) -> bool:
    if item.run in at_work and item.run is not None:
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
