"""How much evidence a look asks for: the error rates, split over the looks, and corrected for many guards."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.trial.order import LOOKS

ALPHA = 0.05  # one-sided: of keeping a change that costs as much as its limit, or of seeing a gain that is none
PER_LOOK = ALPHA / LOOKS  # of what is counted: failures, answers
# Of what is judged by the noise between phases. The first look decides nothing there, which leaves five. With one level
# at each of them (Pocock, "Group sequential methods in the design and analysis of clinical trials", Biometrika 1977)
# the looks after 2, 3, 4, 6 and 8 pairs spend 5 % and 1 % in all, and any five others less.
KEEP_PER_LOOK = 0.0173
HARM_PER_LOOK = 0.0030  # of 1 %, all guards together: a harmless change that is taken back costs trust
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
