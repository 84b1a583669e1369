"""What a host did without its controller, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ACTORS = {"deadman": "its dead-man", "boot": "its boot unit", "hand": "somebody by hand"}


def acted(fired: Mapping[str, Any]) -> str:
    """Who acted, when, and what came of it; `fired` is the host's own record of it."""
    if fired.get("damaged"):
        return "somebody brought files back there; the record of it is damaged"
    by = ACTORS.get(str(fired.get("by")), "somebody")
    came = fired.get("outcome") if fired.get("state") == "done" else "it is at work on that still"
    return f"{by} acted at {fired.get('at')}: {came}"
