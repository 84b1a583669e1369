"""Memory that grows and does not stop: told from one that settles, with when it would be used up.

Three keys, all needed: the evidence of an always-valid test that it climbs; a slope that does not get flatter; and a
use that, going on like that, ends within a day. A process that only takes again what the old one held is no leak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from changectl.core.judging.anytime import climbing

WITHIN = 24 * 3600.0  # seconds; growth that lasts longer than a day until the memory is used up is not judged
STEADY = 0.75  # the later slope against the earlier one; what settles gets flatter
SPANS = 40  # a watch has so many spans of time; each counts by its median
SHORTEST = 1.0  # seconds of a span
LEAST = 4  # spans before anything is said
PATIENT = 12  # spans before it is judged: one that rises, is cleared and rises again has fallen by then
_WARM_SHARE, _WARM_MOST = 0.2, 300.0  # of the watch, and seconds: what a fresh process takes is not looked at


@dataclass(frozen=True, slots=True)
class Held:
    """What a service held at one moment: seconds since the watch began, bytes."""

    seconds: float
    memory: float


@dataclass(frozen=True, slots=True)
class Growth:
    """How the memory of a service went since the moment from which on it climbs most clearly.

    Attributes:
        spans: how many spans of time it was seen in since then.
        slope: bytes per second, the median over all pairs of spans (Theil and Sen).
        evidence: worth of the bet that it climbs, shared out among all possible beginnings.
        steady: whether the slope does not get flatter.
        held: bytes in the last span.
        used_up: seconds until it is used up, if it goes on like this; None: it does not grow, or what is left is not
            known.
    """

    spans: int
    slope: float
    evidence: float
    steady: bool
    held: float
    used_up: float | None

    def harms(self, alpha: float, before: float | None, watch: float) -> bool:
        """Whether it grows for good.

        Args:
            alpha: the chance of a false alarm over the whole watch.
            before: bytes that the process on the saved configuration held; None: not known.
            watch: seconds of the watch; what would be used up sooner than that is not waited for.
        """
        if self.used_up is None or self.used_up > WITHIN or not self.steady:
            return False
        enough = self.spans >= PATIENT or self.used_up <= watch
        return enough and self.evidence * alpha >= 1 and (before is None or self.held > before)


def warm_up(watch: float) -> float:
    """Seconds at the beginning of a watch that are not looked at."""
    return min(_WARM_SHARE * watch, _WARM_MOST)


def growth(held: Sequence[Held], watch: float, left: float | None) -> Growth | None:
    """How the memory went so far; None: it was seen in too few spans of time.

    Args:
        held: every look, in order.
        watch: seconds that the whole watch lasts: they give the spans, which therefore stay the same at each look.
        left: bytes that are left to take; None: not known.
    """
    every = _spans(held, watch)
    if len(every) < LEAST:
        return None
    begins = [every[begin:] for begin in range(len(every) - LEAST + 1)]
    evidence, spans = max(((_evidence(spans), spans) for spans in begins), key=lambda found: found[0])
    half = len(spans) // 2
    slope, early, late = _slope(spans), _slope(spans[: half + 1]), _slope(spans[half:])
    return Growth(
        spans=len(spans),
        slope=slope,
        evidence=evidence,
        steady=late > 0 and late >= STEADY * early,
        held=spans[-1].memory,
        used_up=None if left is None or slope <= 0 else max(0.0, left) / slope,
    )


def _evidence(spans: Sequence[Held]) -> float:
    """Of growth that began with the first of these spans: one of so many possible beginnings, which share alpha."""
    return climbing([one.memory for one in spans]) / SPANS


def _spans(held: Sequence[Held], watch: float) -> list[Held]:
    """The median of every span that is over; one in which nobody could look is left out."""
    length, begin = max(SHORTEST, watch / SPANS), warm_up(watch)
    found: dict[int, list[Held]] = {}
    for one in held:
        if one.seconds >= begin:
            found.setdefault(int((one.seconds - begin) / length), []).append(one)
    over = sorted(found)[:-1]
    return [Held(begin + (span + 0.5) * length, median(one.memory for one in found[span])) for span in over]


def _slope(spans: Sequence[Held]) -> float:
    pairs = combinations(spans, 2)
    return median((later.memory - one.memory) / (later.seconds - one.seconds) for one, later in pairs)
