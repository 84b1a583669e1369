"""Which of many found requests make a workload: as many as asked for, as long as all of them, the same for one seed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from changectl.core.digest import sha256
from changectl.core.workload.source import Candidate


def choose(found: Sequence[Candidate], requests: int, seed: int) -> list[Candidate]:
    """So many of them, in the source's order.

    They are sorted by length and cut into so many parts of equal number, and of each part one is taken: so the lengths
    of those taken are spread as those of all are. Which one, the seed says and the place in the source.
    """
    if len(found) <= requests:
        return list(found)
    ordered = sorted(found, key=lambda one: (one.size, one.place))
    bounds = [len(ordered) * number // requests for number in range(requests + 1)]
    taken = [_one(ordered[first:last], seed) for first, last in pairwise(bounds)]
    return sorted(taken, key=lambda one: one.place)


def _one(part: Sequence[Candidate], seed: int) -> Candidate:
    return min(part, key=lambda one: sha256(f"{seed}\0{one.place}".encode()))


def entries(taken: Sequence[Candidate], name: str = "line") -> list[dict[str, Any]]:
    """Their lines; each is called after its place in the source, so that it can be found again."""
    return [{"id": f"{name}-{one.place}", **one.entry} for one in taken]
