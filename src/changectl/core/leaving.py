"""What was found before an instance would be taken out of service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Leaving:
    """Whether an instance can leave service and come back, as things are now.

    Attributes:
        place: what switches its users, in words; "": nothing does.
        trouble: why it cannot be taken out; "": it can.
        reason: the stable word of that.
        noticed: whether the plan allows that users notice it, so that nobody was asked who serves meanwhile.
        out: whether it is out already.
    """

    place: str = ""
    trouble: str = ""
    reason: str = ""
    noticed: bool = False
    out: bool = False
