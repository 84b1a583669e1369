"""What the OpenAI-compatible protocols share: the request's frame, usage, errors, the end marker."""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple

from changectl.loads._sse import Event

Request = Tuple[str, str, List[Tuple[str, str]], bytes]

METRICS = (
    "ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max", "e2e_user", "e2e_sent", "rps_ok", "out_tok_s", "failures",
    "goodput",
)  # fmt: skip


MOST_COUNTED = 1 << 53  # a server that counts further than this has lost count


class Usage(NamedTuple):
    """Token counts as the server says them; None: it did not."""

    n_in: Optional[int]
    n_out: Optional[int]
    cached: Optional[int]


class Piece(NamedTuple):
    """What one event of a stream brought.

    `output` and `reasoning` are text, `tool` tells of a tool call; empty ones bring no token. `called`: the call's name
    and arguments, which two answers can have in common. `error`: the server says that the answer failed. `broken`: what
    came is no answer of this protocol. `done`: the end marker.
    """

    output: str = ""
    reasoning: str = ""
    tool: bool = False
    called: str = ""
    finish: Optional[str] = None
    usage: Optional[Usage] = None
    error: Optional[str] = None
    broken: Optional[str] = None
    done: bool = False

    @property
    def content(self) -> bool:
        """Whether it brought at least a part of a token to the reader."""
        return bool(self.output or self.reasoning or self.tool)


DONE = Piece(done=True)


def request(path: str, own: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """A streaming, greedy, seeded request with usage asked for; `settings["body"]` may add fields."""
    body: Dict[str, Any] = {
        "model": settings["model"],
        "temperature": 0,
        "seed": settings.get("seed", 0),
        "stream": True,
    }
    body["max_tokens"] = settings["max_tokens"]
    if settings.get("include_usage", True):
        body["stream_options"] = {"include_usage": True}
    body.update(settings.get("body") or {})
    body.update(own)
    headers = [("Content-Type", "application/json"), ("Accept", "text/event-stream")]
    return "POST", path, headers, json.dumps(body, separators=(",", ":")).encode("utf-8")


def classify(event: Event, choice: Callable[[Mapping[str, Any]], Piece]) -> Piece:
    """What an event brought; `choice` reads one member of its `choices`."""
    if event.name == "error":
        return Piece(error=short(event.data) or "error event")
    if event.data.strip() == "[DONE]":
        return DONE
    try:
        message = json.loads(event.data)
    except (ValueError, RecursionError):  # nested deeper than anybody can read is not JSON to us either
        return Piece(error="not JSON: " + short(event.data))
    if not isinstance(message, dict):
        return Piece(error="not a JSON object: " + short(event.data))
    error = message_error(message)
    if error is not None:
        return Piece(error=error)
    usage = usage_of(message)
    choices = message.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return Piece(usage=usage)
    piece = choice(choices[0])
    return piece if usage is None else piece._replace(usage=usage)


def message_error(message: Mapping[str, Any]) -> Optional[str]:
    """The error that a JSON answer carries in place of content; None: none."""
    error = message.get("error")
    if error:
        text = error.get("message") if isinstance(error, dict) else None
        return short(text if isinstance(text, str) and text else json.dumps(error))
    if message.get("object") == "error":
        return short(str(message.get("message") or "error object"))
    return None


def text_of(value: Any) -> str:
    """The text, or nothing where the server sent null or something else."""
    return value if isinstance(value, str) else ""


def finish_of(choice: Mapping[str, Any]) -> Optional[str]:
    """The finish reason, if this choice ends the answer."""
    return text_of(choice.get("finish_reason")) or None


def usage_of(message: Mapping[str, Any]) -> Optional[Usage]:
    """The token counts of an answer; None: it has none."""
    usage, timings = message.get("usage"), message.get("timings")
    cached = count(timings.get("cache_n")) if isinstance(timings, dict) else None
    if not isinstance(usage, dict):
        return None if cached is None else Usage(None, None, cached)
    details = usage.get("prompt_tokens_details")
    if isinstance(details, dict) and count(details.get("cached_tokens")) is not None:
        cached = count(details.get("cached_tokens"))
    return Usage(count(usage.get("prompt_tokens")), count(usage.get("completion_tokens")), cached)


def count(value: Any) -> Optional[int]:
    """The number, where it can be one of things."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value < MOST_COUNTED else None


def short(text: str) -> str:
    """The text as an error message takes it."""
    return text if len(text) <= 200 else text[:199] + "…"
