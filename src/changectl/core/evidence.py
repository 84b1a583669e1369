"""How much evidence a look asks for: the error rates, split over the looks, and corrected for many guards."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.trial_order import LOOKS

ALPHA = 0.05  # one-sided: of calling a change harmful that is not, and of keeping one that costs as much as its limit
PER_LOOK = ALPHA / LOOKS
POWER = 0.8  # of what is called visible: found four times out of five


def holm(evidence: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given: each may be held against the error rate of all of them together.

    One guard of many is enough to call a change harmful, so their evidence is corrected. Keeping one asks for all of
    them, which needs no correction.
    """
    adjusted = [1.0] * len(evidence)
    highest = 0.0
    for place, index in enumerate(sorted(range(len(evidence)), key=lambda index: evidence[index])):
        highest = max(highest, min(1.0, evidence[index] * (len(evidence) - place)))
        adjusted[index] = highest
    return adjusted
