"""What stands beside a verdict without changing it: each kind of remark once, with all its places."""

from __future__ import annotations

import re
from collections.abc import Sequence

from changectl.core.history.events import text_of
from changectl.core.ports import Json

_NO_MATTER = "this does not change the verdict"
# A remark that comes once for each level and phase: how it was recorded, and how all of them are told together.
_MERGED = {
    "cache_unknown": (
        r"the server did not say at (\S+) (.+) what was cached",
        f"the server did not say what was cached ({{places}}); {_NO_MATTER}",
    ),
    "generator_late": (
        r"the load generator was busy at (\S+) (.+)",
        f"the load generator was busy ({{places}}), so that answers may have been noticed a little late; {_NO_MATTER}. "
        "A caller host with more free processors helps",
    ),
}


def remarks(flags: Sequence[Json]) -> list[str]:
    """The flags of a step's verdicts in sentences, in the order recorded."""
    told: dict[str, None] = {}
    for flag in flags:
        told.setdefault(_remark(flag, flags))
    return list(told)


def _remark(flag: Json, flags: Sequence[Json]) -> str:
    code, text = text_of(flag, "code"), text_of(flag, "text")
    pattern, together = _MERGED.get(code, ("", ""))
    if not pattern or not re.fullmatch(pattern, text):
        return text
    same = [match for one in flags if text_of(one, "code") == code
            and (match := re.fullmatch(pattern, text_of(one, "text")))]  # fmt: skip
    levels: dict[str, dict[str, None]] = {}
    for match in same:
        levels.setdefault(match[2], {}).setdefault(match[1])
    return together.format(places="; ".join(f"at {', '.join(names)} {when}" for when, names in levels.items()))
