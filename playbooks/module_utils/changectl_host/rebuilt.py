"""What the list of events tells of a record that somebody damaged: the saved files come back all the same."""

from __future__ import annotations

from typing import Any, Dict, Optional

from .state import Run

Record = Dict[str, Any]


def armed(run: Run) -> Record:
    """What was armed last: {damaged, nonce, generation, only, manager, service}; None each where no event tells.

    Without `only`, everything that was saved comes back.
    """
    found = _last(run, "armed") or {}
    names = ("nonce", "generation", "boot", "at", "only", "manager", "service", "traffic", "keeper")
    return {"damaged": True, **{name: found.get(name) for name in names}}


def fired(run: Run) -> Record:
    """What was brought back last; without an event of its end it counts as begun, and not over.

    Whoever begins one raises the run's own generation before, so that number stands in for its own.
    """
    found = next((event for event in reversed(run.events()) if event.get("event") in ("armed", "fired")), None)
    if found is not None and found["event"] == "fired":  # what was armed again since is not back by that
        names = ("by", "outcome", "nonce", "generation", "at")
        return {"damaged": True, "state": "done", **{name: found.get(name) for name in names}}
    return {"damaged": True, "state": "acting", "nonce": None, "generation": run.header().get("generation") or 0}


def overtaken(record: Record, later: Optional[Record]) -> bool:
    """Whether a decision, or a way back, came after what an event tells of arming.

    A later owner has armed.json in its name without an event of its own, so the nonce alone does not tell. Within one
    generation the host's own clock decides.
    """
    if later is None or record.get("generation") is None:
        return False
    if record["nonce"] == later.get("nonce"):
        return True
    mine, theirs = int(record["generation"]), int(later.get("generation") or 0)
    return theirs > mine or (theirs == mine and str(later.get("at") or "") >= str(record.get("at") or ""))


def _last(run: Run, name: str) -> Optional[Record]:
    return next((event for event in reversed(run.events()) if event.get("event") == name), None)
