"""A calibration: the saved configuration against itself, to learn how much its figures differ from phase to phase.

Nothing is judged here. Phases that may not be compared, or of which several went their own way, teach nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from changectl.core.judging.judgement import Judgement, Reason, Verdict
from changectl.core.trial.flags import outliers
from changectl.core.trial.noise import spreads_unchanged
from changectl.core.trial.noise_learned import usual_of
from changectl.core.trial.noise_model import AT, ENOUGH, NoiseModel, Spread
from changectl.core.trial.order import LEAST_TO_LEARN, MOST_PAIRS, PAIRS, Times
from changectl.core.trial.phases import TrialPhase, pairs_done, unlike_first
from changectl.core.trial.price import Sight, price
from changectl.core.units import format_share

EFFORT = "standard"  # whose sight is told before and after


@dataclass(frozen=True, slots=True)
class Calibration:
    """How much of the saved configuration is measured.

    Attributes:
        pairs: of phases, of each kind of host; None: as many as fit into the time, or as make it count as calibrated.
        seconds: that all phases and starts of an instance may take; None: as long as they take.
    """

    pairs: int | None = None
    seconds: float | None = None

    @property
    def by_need(self) -> bool:
        """Whether nobody said how much, so that what is known already counts."""
        return self.pairs is None and self.seconds is None


@dataclass(frozen=True, slots=True)
class Taught:
    """What the phases of one host say.

    Attributes:
        spreads: figure -> its spread from phase to phase; empty: nothing can be learned from them.
        usual: how large the same figures are.
        why: what speaks against it; "": nothing does.
        ended: why no further phase followed; "": all had their turn.
        left_out: the one phase that was unlike the others, and was left out; "": there was none.
    """

    spreads: Mapping[str, Spread]
    usual: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    left_out: str = ""
    ended: str = ""


def pairs_needed(noise: NoiseModel, figures: Sequence[str], levels: Sequence[str]) -> int:
    """How many pairs of phases make the figures count as calibrated; 0: they do already.

    2k phases have 2k - 2 degrees of freedom beside a drift. What was never measured of a service that was measured is
    none of its figures.
    """
    named = [f"{figure}{AT}{level}" for figure in figures for level in levels]
    known = [own.df for name in named if (own := noise.own(name)) is not None]
    missing = ENOUGH - min(known, default=0.0)
    if missing <= 0:
        return 0
    return min(MOST_PAIRS, max(LEAST_TO_LEARN, math.ceil((missing + 2) / 2)))


def looked_at(phases: Sequence[TrialPhase], schedule: Sequence[int]) -> Judgement:
    """Whether the next phase follows: until all pairs are done, or a phase may not be taken together with the first."""
    if reasons := unlike_first(phases):
        return Judgement(Verdict.INVALID, tuple(reasons), decision="revert")
    done, last = pairs_done(phases), max(schedule)
    if len(phases) < 2 * last:
        return Judgement(Verdict.INCONCLUSIVE, (Reason("go_on", f"{done} of {last} pairs are done"),), decision="go_on")
    return Judgement(Verdict.UNCHANGED, (Reason("measured", f"all {last} pairs are done"),), decision="revert")


def taught(phases: Sequence[TrialPhase]) -> Taught:
    """What phases that may be taken together say of noise.

    One phase unlike all others is an accident, and left out; several are what this host is like, which no figure of
    noise describes.
    """
    odd = outliers(phases)
    if len(odd) > 1:
        return Taught({}, why="; ".join(str(reason) for reason in odd.values()))
    even = [phase for phase in phases if phase.number not in odd]
    spreads = spreads_unchanged(even)
    why = "" if spreads else f"{len(phases)} phases are too few to tell noise from a drift of the host"
    return Taught(spreads, usual_of(even, spreads), why, "".join(reason.text for reason in odd.values()))


def blindest(noise: NoiseModel, figures: Sequence[str], levels: Sequence[str]) -> Sight:
    """What a standard trial can see of the figure that it sees the least of."""
    found = price(PAIRS[EFFORT], Times(0.0, 0.0), noise, figures, len(figures) * max(1, len(levels)), levels)
    return max(found.sights, key=lambda sight: (sight.visible, sight.provable or math.inf))


def told(sight: Sight) -> str:
    """That in a few words."""
    source = "" if sight.source == "calibrated" else " (uncalibrated: 1 % between phases is a guess)"
    shown = "" if sight.provable is None else f", and no harm is shown to within {format_share(sight.provable, 2)}"
    return f"a regression of {format_share(sight.visible, 2)} or more is seen{shown}{source}"
