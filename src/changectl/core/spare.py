"""Whether the other members of a balancer can take what one of them serves now, by the engines' own counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LAST_MEMBER, OTHERS_UNKNOWN, OTHERS_FULL = "last_member", "others_unknown", "others_full"
WAY_OUT = "write `outage: 5m` into the plan if users may notice it"


@dataclass(frozen=True, slots=True)
class MemberLoad:
    """One member that answers.

    Attributes:
        address: as the balancer knows it.
        in_work: requests that run or wait there, the most of several looks; None: its engine does not say.
        slots: requests that it serves at a time; None: not known.
    """

    address: str
    in_work: float | None
    slots: float | None


def cannot_spare(own: MemberLoad, others: Sequence[MemberLoad]) -> tuple[str, str] | None:
    """Why a member cannot be spared: a stable word and a sentence; None: it can. What is not known counts as no.

    Args:
        own: the member that is to be taken out.
        others: those that stay, are healthy, and get requests.
    """
    if not others:
        return LAST_MEMBER, f"{own.address} is the last healthy member: nobody would serve meanwhile; {WAY_OUT}"
    mute = [one.address for one in (own, *others) if one.in_work is None]
    if mute:
        text = f"{', '.join(mute)} does not tell how many requests it has"
        return OTHERS_UNKNOWN, f"{text}, so nobody knows whether the others can take more; {WAY_OUT}"
    moving = own.in_work or 0.0
    if not moving:
        return None
    boundless = [one.address for one in others if one.slots is None]
    if boundless:
        text = f"{own.address} serves {moving:g} requests, and how many {', '.join(boundless)} can take is not known"
        return OTHERS_UNKNOWN, f"{text}; {WAY_OUT}"
    room = sum(max(0.0, (one.slots or 0.0) - (one.in_work or 0.0)) for one in others)
    if room >= moving:
        return None
    text = f"{own.address} serves {moving:g} requests, and the others have room for {room:g}: wait for less traffic"
    return OTHERS_FULL, f"{text}, or {WAY_OUT}"
