"""What protocols share whose answers come as one JSON document: no tokens one by one, hence no time to a first one."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from changectl.loads._openai import Piece, Request, message_error, short

METRICS = ("e2e_user", "e2e_sent", "rps_ok", "failures", "goodput")


def request(path: str, body: Mapping[str, Any]) -> Request:
    """A request with a JSON body, answered by JSON."""
    headers: List[Tuple[str, str]] = [("Content-Type", "application/json"), ("Accept", "application/json")]
    return "POST", path, headers, json.dumps(body, separators=(",", ":")).encode("utf-8")


def read(body: str, answer: Callable[[Mapping[str, Any]], Piece]) -> Piece:
    """What a whole answer brought; `answer` reads a document that says nothing of an error.

    A good one has a `finish`: it says what came, so that answers of another kind show as another one.
    """
    try:
        # The standard has no such numbers, and a model that computes them computes nothing.
        message = json.loads(body, parse_constant=_not_a_number)
    except (ValueError, RecursionError) as wrong:
        return Piece(broken="not JSON: {}".format(short(str(wrong))))
    if not isinstance(message, dict):
        return Piece(broken="not a JSON object: {}".format(short(body)))
    error = message_error(message)
    return Piece(error=error) if error is not None else answer(message)


def _not_a_number(name: str) -> float:
    raise ValueError("{} is no number".format(name))


def is_number(value: Any) -> bool:
    """Whether it is a number, and not a truth value."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def first(members: Any) -> Optional[Dict[str, Any]]:
    """The first member of a list of objects; None: there is none."""
    return members[0] if isinstance(members, list) and members and isinstance(members[0], dict) else None
