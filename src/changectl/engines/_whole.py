"""Engines whose answers come whole, as a vector or tensors; the load protocols know what is asked and answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from changectl import loads
from changectl.core.engine import Page, ProbeRequest
from changectl.engines._openai import ANSWER_TIMEOUT, PROMPT


def answer_request(
    protocol: str, base: str, model_name: str | None, headers: Mapping[str, str], inputs: Sequence[Any] | None
) -> ProbeRequest:
    """One real request: the declared tensors, or a word."""
    content = {"prompt": PROMPT} if inputs is None else {"inputs": list(inputs)}
    settings = {"model": model_name or "default"}
    method, path, own, body = loads.load(protocol).build_request(content, settings)
    return ProbeRequest("answer", f"{base}{path}", method, {**headers, **dict(own)}, body.decode(), ANSWER_TIMEOUT)


def came(protocol: str, page: Page | None) -> str | None:
    """What a good answer brought, in words; None: it is none."""
    if page is None or not page.ok:
        return None
    finish = loads.load(protocol).read(page.body).finish
    return None if finish is None else str(finish)


def model_path(name: str | None) -> str:
    """Where the Open Inference Protocol tells of a model."""
    return f"/v2/models/{quote(name or '', safe='')}"


def model(page: Page | None) -> list[str] | None:
    """The name that the model's page has; None: there is no such page."""
    document = page.json() if page else None
    name = document.get("name") if isinstance(document, dict) else None
    return [name] if isinstance(name, str) else None
