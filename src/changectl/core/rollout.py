"""A step on several instances: what became of each of them, and what they run together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from changectl.core.lifecycle import Outcome

OnPartial = Literal["stop", "revert_all"]  # of the instances that keep the change, when a later one is not kept
# The whole trial of the plan's effort, one look before and one after, or what live traffic shows.
Look = Literal["trial", "short", "live"]

UNTOUCHED = "untouched"  # nothing was written there: it runs what it ran before
ALREADY = "nothing_to_do"  # its file said so before
STAYS = (Outcome.KEPT.value, Outcome.KEPT_UNJUDGED.value)  # the change is in force there, by this step
HAS_VALUE = (*STAYS, ALREADY)

_WORDS = {
    **dict.fromkeys(STAYS, "runs on the change"),
    ALREADY: "had the value already",
    Outcome.REVERTED.value: "runs on the saved configuration again",
    UNTOUCHED: "was not touched",
    Outcome.REVERT_UNVERIFIED.value: "was restored, which is not proven",
    Outcome.REVERT_FAILED.value: "could not be restored",
}


def mix(ends: Mapping[str, str]) -> str:
    """Who runs what, in one line: `gpu1 runs on the change; gpu2 ... again; gpu3, gpu4 not touched`.

    Args:
        ends: by instance, its outcome, `untouched` or `nothing_to_do`.
    """
    by_words: dict[str, list[str]] = {}
    for name, end in ends.items():
        by_words.setdefault(_WORDS.get(end, end), []).append(name)
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in by_words.items())


def look_at(differing: Sequence[str], *, first: bool, live: bool = False) -> Look:
    """How an instance is judged: what the first one has shown counts for its like alone, and without load for none."""
    if live:
        return "live"
    return "trial" if first or differing else "short"


def in_turn(looks: Sequence[tuple[str, Look | None]]) -> str:
    """Who gets which check, in order: `gpu1 the whole trial, then gpu2 a short check`; "": one instance.

    Args:
        looks: every instance with its check; None: there is nothing to do.
    """
    if len(looks) < 2:
        return ""
    words = {"trial": "the whole trial", "short": "a short check", "live": "by what is live there"}
    return ", then ".join(f"{name} {words[look]}" for name, look in looks if look is not None)
