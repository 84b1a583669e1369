"""OpenAI-compatible embeddings: POST /v1/embeddings, one text in, one vector out, whole."""

from __future__ import annotations

from typing import Any, Dict, Mapping

from changectl.loads import _whole
from changectl.loads._openai import Piece, Request, Usage, usage_of
from changectl.loads._whole import METRICS

__all__ = ["METRICS", "NAME", "STREAMED", "build_request", "read"]

NAME = "openai_embeddings"
STREAMED = False


def build_request(prompt: Mapping[str, Any], settings: Mapping[str, Any]) -> Request:
    """Method, path, headers and body for one text.

    Args:
        prompt: {"prompt": text}.
        settings: model, and optionally body (more fields).
    """
    body: Dict[str, Any] = {"model": settings["model"], "encoding_format": "float"}
    body.update(settings.get("body") or {})
    body["input"] = prompt["prompt"]
    return _whole.request("/v1/embeddings", body)


def read(body: str) -> Piece:
    """What an answer brought: one vector of finite numbers, or none."""
    return _whole.read(body, _answer)


def _answer(message: Mapping[str, Any]) -> Piece:
    data = message.get("data")
    if not isinstance(data, list) or len(data) > 1:
        came = "no list of vectors" if not isinstance(data, list) else "{} vectors".format(len(data))
        return Piece(broken="{} for one text".format(came))
    entry = _whole.first(data)
    vector = None if entry is None else entry.get("embedding")
    usage = usage_of(message)
    said = None if usage is None else Usage(usage.n_in, None, usage.cached)
    if data and not isinstance(vector, list):
        return Piece(broken="the vector is no list of numbers", usage=said)
    if not vector:
        return Piece(usage=said, done=True)
    if not all(_whole.is_number(number) for number in vector):
        return Piece(broken="the vector does not consist of numbers", usage=said)
    return Piece(finish="{} numbers".format(len(vector)), usage=said, done=True)
