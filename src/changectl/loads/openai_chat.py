"""OpenAI-compatible chat: POST /v1/chat/completions, streamed."""

from __future__ import annotations

from typing import Any, Mapping

from changectl.loads import _openai
from changectl.loads._openai import METRICS, Piece, Request
from changectl.loads._sse import Event

__all__ = ["METRICS", "NAME", "STREAMED", "build_request", "classify"]

NAME = "openai_chat"
STREAMED = True


def build_request(prompt: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """Method, path, headers and body for one conversation.

    Args:
        prompt: {"messages": [...]}, or {"prompt": text}, which becomes one message of the user.
        settings: model, max_tokens, and optionally seed, include_usage, body (more fields).
    """
    messages = prompt.get("messages")
    if messages is None:
        messages = [{"role": "user", "content": prompt["prompt"]}]
    return _openai.request("/v1/chat/completions", {"messages": messages}, settings)


def classify(event: Event) -> Piece:
    """What one event of the answer brought; the role alone brings nothing."""
    return _openai.classify(event, _choice)


def _choice(choice: Mapping[str, Any]) -> Piece:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return Piece(finish=_openai.finish_of(choice))
    return Piece(
        output=_openai.text_of(delta.get("content")),
        # Servers disagree on the name of the field for thoughts.
        reasoning=_openai.text_of(delta.get("reasoning_content")) or _openai.text_of(delta.get("reasoning")),
        tool=bool(delta.get("tool_calls")),
        called=_called(delta.get("tool_calls")),
        finish=_openai.finish_of(choice),
    )


def _called(calls: Any) -> str:
    """Names and arguments; the id of a call is another one each time."""
    functions = [call.get("function") for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    texts = [(one.get("name"), one.get("arguments")) for one in functions if isinstance(one, dict)]
    return "".join(_openai.text_of(text) for pair in texts for text in pair)
