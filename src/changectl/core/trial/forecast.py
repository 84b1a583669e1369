"""What would decide a trial that is still open: how many more pairs, if effect and noise stayed as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from changectl.core.judging.judgement import Reason, Row
from changectl.core.trial.order import MOST_PAIRS

FARTHEST = 64  # pairs; what takes more lies at its limit
_NAMED = 5  # figures that a sentence lists


def more_pairs(open_figures: Sequence[Callable[[int], bool] | None], done: int) -> int | None:
    """How many pairs more decide all of them; None: no number does.

    Args:
        open_figures: of each figure, whether so many pairs decide it; None: pairs do not help it.
        done: how many there are.
    """
    needed = done
    for decided in open_figures:
        numbers = range(max(done + 1, 2), FARTHEST + 1)
        found = next((number for number in numbers if decided is not None and decided(number)), None)
        if found is None:
            return None
        needed = max(needed, found)
    return needed - done


def told(more: int | None, done: int, rows: Sequence[Row]) -> Reason:
    """What would decide it, for whoever has to say how to go on."""
    if more is None:
        text = f"no number of pairs would decide it: {places(rows)} is too near to its limit, or too few phases have it"
        return Reason("more_pairs", f"{text}; widen the limit (accept), or change more")
    if done + more > MOST_PAIRS:
        text = f"{more} more pairs at this noise ({done + more} in all) would decide it; a trial has at most"
        hint = "measure longer phases, or while the host is quieter, or widen the limit"
        return Reason("more_pairs", f"{text} {MOST_PAIRS}: {hint}")
    pairs = "1 more pair" if more == 1 else f"{more} more pairs"
    return Reason("more_pairs", f"{pairs} at this noise would decide it")


def places(rows: Sequence[Row]) -> str:
    """The figures by name, and how many others."""
    named = ", ".join(row.place for row in rows[:_NAMED])
    return f"{named} and {len(rows) - _NAMED} others" if len(rows) > _NAMED else named
