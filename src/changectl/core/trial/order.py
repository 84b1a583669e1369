"""The order of a trial's phases, the pairs after which there is a look, and how many pairs fit into a time.

A is the saved configuration, B the new one. In the order A B | B A | A B a host that gets slower step by step does so
for both letters alike; in A B A B it would always hurt B more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Letter = Literal["A", "B"]

LOOKS = 6  # what the error rates are split over, also by an effort with fewer: extending it then costs nothing
SCHEDULE = (1, 2, 3, 4, 6, 8)
MOST_PAIRS = SCHEDULE[-1]
LEAST_TO_LEARN = 2  # pairs; fewer phases tell no noise from a drift of the host
PAIRS = {"standard": 4, "thorough": MOST_PAIRS}


@dataclass(frozen=True, slots=True)
class Times:
    """How long the parts of a trial take, in seconds, measured or declared.

    Attributes:
        load: from the start to the first real answer.
        phase: warm-up and all levels.
        swap: stopping, and putting the other configuration in place.
    """

    load: float
    phase: float
    swap: float = 0.0


@dataclass(frozen=True, slots=True)
class Length:
    """What so many pairs take, counted for the verdict that costs most.

    Attributes:
        pairs: of an A and a B.
        phases: each with a fresh start.
        starts: at most; after the last phase the configuration may have to be changed once more.
        seconds: at most, from the first start to the last answer.
        down: of them, those in which the service is stopped or loading.
    """

    pairs: int
    phases: int
    starts: int
    seconds: float
    down: float


def order(pairs: int) -> tuple[Letter, ...]:
    """The letters of all phases: A B | B A | A B ...; neighbours with the same letter are two starts all the same."""
    return tuple(letter for pair in range(pairs) for letter in (("B", "A") if pair % 2 else ("A", "B")))


def looks(pairs: int, taken: Sequence[int] = ()) -> tuple[int, ...]:
    """The numbers of pairs after which the evidence is looked at; the last one is `pairs`.

    Never more than six with those taken already, and as long as fewer pairs are asked for than there can be, one is
    left for extending the trial to its end.

    Args:
        pairs: that the effort has in all.
        taken: the looks that this trial had before it was extended.

    Raises:
        ValueError: no pair, or more than a trial can have.
    """
    if not 1 <= pairs <= MOST_PAIRS:
        raise ValueError(f"a trial has 1 to {MOST_PAIRS} pairs, not {pairs}")
    done, room = max(taken, default=0), LOOKS - len(taken)
    if pairs <= done or room < 1:
        return ()
    kept = max(1, room - 1) if pairs < MOST_PAIRS else room
    between = [look for look in SCHEDULE if done < look < pairs]
    return (*between[: kept - 1], pairs)


def length(pairs: int, times: Times) -> Length:
    """What so many pairs take."""
    starts, swaps = 2 * pairs + 1, pairs + 1
    down = starts * times.load + swaps * times.swap
    return Length(pairs, 2 * pairs, starts, down + 2 * pairs * times.phase, down)


def pairs_within(seconds: float, times: Times) -> int:
    """As many pairs as fit into a time, and not more than a trial can have; 0: not even one does."""
    return max((pairs for pairs in range(1, MOST_PAIRS + 1) if length(pairs, times).seconds <= seconds), default=0)
