"""The heads of the controllers' journals that this host has seen: no journal can be rewritten unnoticed."""

from __future__ import annotations

import glob
import os
from typing import Any, Dict, List, Optional

from .failure import Failure
from .locks import UPSTREAMS, host_folder
from .state import Run, append_line, timestamp

Record = Dict[str, Any]
NAME = "witness.jsonl"


def head_of(head: Any) -> Optional[Record]:
    """The head of the controller's journal."""
    if head is None:
        return None
    if not isinstance(head, dict) or not isinstance(head.get("sequence"), int) or not isinstance(head.get("hash"), str):
        raise Failure("bad_arguments", "head must be {sequence: number, hash: text}")
    return {"sequence": head["sequence"], "hash": head["hash"]}


def path() -> str:
    """The list of the journals' heads that this host has seen."""
    return os.path.join(host_folder(), NAME)


def paths() -> List[str]:
    """That list, and those of the upstreams that are held here: who asks the host does not know their names."""
    return [path(), *sorted(glob.glob(os.path.join(glob.escape(host_folder()), UPSTREAMS, "*", NAME)))]


def add(run: Run, what: str, head: Any) -> None:
    """This host remembers how far the journal went: it cannot be rewritten unnoticed."""
    seen = head_of(head)
    if seen is not None:
        append_line(path(), {"at": timestamp(), "run": run.name, "what": what, **seen})
