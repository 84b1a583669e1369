"""OpenAI-compatible text completions: POST /v1/completions, streamed."""

from __future__ import annotations

from typing import Any, Mapping

from changectl.loads import _openai
from changectl.loads._openai import METRICS, Piece, Request
from changectl.loads._sse import Event

__all__ = ["METRICS", "NAME", "STREAMED", "build_request", "classify"]

NAME = "openai_completions"
STREAMED = True


def build_request(prompt: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """Method, path, headers and body for one prompt.

    Args:
        prompt: {"prompt": text}, or {"messages": [...]}, whose contents are then joined.
        settings: model, max_tokens, and optionally seed, include_usage, body (more fields).
    """
    text = prompt.get("prompt")
    if text is None:
        text = "\n".join(str(message.get("content") or "") for message in prompt["messages"])
    return _openai.request("/v1/completions", {"prompt": text}, settings)


def classify(event: Event) -> Piece:
    """What one event of the answer brought."""
    return _openai.classify(event, _choice)


def _choice(choice: Mapping[str, Any]) -> Piece:
    return Piece(output=_openai.text_of(choice.get("text")), finish=_openai.finish_of(choice))
