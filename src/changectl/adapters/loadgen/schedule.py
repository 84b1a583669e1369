"""When the requests of an open level are due: drawn before the phase, from the job's seed and the level's name."""

from __future__ import annotations

import hashlib
from random import Random
from typing import List


def arrivals(seed: int, level: str, requests: int, seconds: float) -> List[int]:
    """So many moments within so much time, ascending, in nanoseconds from the level's beginning.

    They are the arrivals of a Poisson process, of which the number in the period is known: independent uniform moments,
    sorted (Devroye, Non-Uniform Random Variate Generation, 1986, chapter V: the same as exponential gaps, one more than
    there are requests, rescaled to fill the period). So length and number are exactly what was asked, and the gaps are
    those of users who know nothing of each other.

    The same seed and level give the same schedule on every host: a `Random` that was seeded with a number goes through
    the same `random()` in all Pythons (the library's "Notes on Reproducibility"), and nothing else of it is used.
    """
    digest = hashlib.sha256("{}\0{}".format(seed, level).encode("utf-8")).digest()
    random = Random(int.from_bytes(digest, "big"))  # noqa: S311  nobody has to be kept from guessing it
    return sorted(int(random.random() * seconds * 1e9) for _ in range(requests))


def most_within(schedule: List[int], seconds: float) -> int:
    """How many moments of a schedule lie within this time of each other, where they lie closest."""
    span, first, most = int(seconds * 1e9), 0, 0
    for number, moment in enumerate(schedule):
        while moment - schedule[first] > span:
            first += 1
        most = max(most, number - first + 1)
    return most
