"""Engines that speak the OpenAI protocol: health, models, one real answer, a counter that must move."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from changectl.core.engine import Page, Pages, ProbeRequest, Readiness
from changectl.engines._base import BaseEngine

ANSWER_TOKENS = 2
ANSWER_TIMEOUT = 60.0  # seconds; the first answer after a start may compile
PROMPT = "Hello"


class OpenAIEngine(BaseEngine):
    """Readiness told from pages: port, health, right model, a real answer, the token counter moved."""

    counter: ClassVar[str]  # the name of the counter of generated tokens
    extra_pages: ClassVar[Sequence[tuple[str, str]]] = ()  # (name, path) beyond health, models and metrics

    def probes(
        self, endpoint: str, model_name: str | None, auth: Mapping[str, str] | None, *, answer: bool = True
    ) -> list[ProbeRequest]:
        """Requests in order: the counter is read before and after the one real answer."""
        base = endpoint.rstrip("/")
        headers = auth_headers(auth)

        def get(name: str, path: str) -> ProbeRequest:
            return ProbeRequest(name, f"{base}{path}", headers=headers)

        requests = [get("health", "/health"), get("models", "/v1/models")]
        requests += [get(name, path) for name, path in self.extra_pages]
        if answer:
            requests += [
                get("metrics_before", "/metrics"),
                answer_request(self.protocols[0], base, model_name, headers),
            ]
        return [*requests, get("metrics", "/metrics")]

    def token_counter(self, pages: Pages) -> float | None:
        """Tokens generated since the start; None: the metrics page is off or lacks the counter."""
        return self._counted(pages.get("metrics"))

    def readiness(self, pages: Pages, expected_model: str | None) -> Readiness:
        """Every further sign is asked for only when the one before holds."""
        early = _health(pages.get("health"))
        if early is not None:
            return early
        served = models(pages.get("models"))
        if served is None:
            return Readiness("loading", f"no list of models yet: {_said(pages.get('models'))}")
        if expected_model is not None and expected_model not in served:
            return Readiness("wrong_model", f"serves {', '.join(served) or 'no model'}, expected {expected_model}")
        return self._answered(pages, served)

    def _answered(self, pages: Pages, served: Sequence[str]) -> Readiness:
        page = pages.get("answer")
        tokens = generated_tokens(page)
        if page is None or tokens is None:
            return Readiness("not_serving", f"healthy, but no real answer: {_said(page)}")
        before, after = self._counted(pages.get("metrics_before")), self._counted(pages.get("metrics"))
        if before is not None and after is not None and after <= before:
            return Readiness("not_serving", f"answered, but its token counter stands still at {after:g}")
        moved = "token counter not exposed" if before is None or after is None else f"token counter {after:g}"
        return Readiness("ready", f"{', '.join(served)} answered {tokens} tokens; {moved}")

    def _counted(self, page: Page | None) -> float | None:
        metrics = page.metrics() if page else None
        return metrics.total(self.counter) if metrics else None


def auth_headers(auth: Mapping[str, str] | None) -> dict[str, str]:
    """Headers for `auth: {bearer: TOKEN}`; the values are secrets."""
    return {"Authorization": f"Bearer {auth['bearer']}"} if auth and auth.get("bearer") else {}


def answer_request(protocol: str, base: str, model_name: str | None, headers: Mapping[str, str]) -> ProbeRequest:
    """One real request for a few tokens at temperature 0."""
    chat = protocol == "openai_chat"
    body: dict[str, Any] = {"model": model_name} if model_name else {}
    body |= {"messages": [{"role": "user", "content": PROMPT}]} if chat else {"prompt": PROMPT}
    body |= {"max_tokens": ANSWER_TOKENS, "temperature": 0}
    path = "/v1/chat/completions" if chat else "/v1/completions"
    headers = {**headers, "Content-Type": "application/json"}
    return ProbeRequest("answer", f"{base}{path}", "POST", headers, json.dumps(body), ANSWER_TIMEOUT)


def models(page: Page | None) -> list[str] | None:
    """Served model names and aliases; None: no such list."""
    document = page.json() if page else None
    rows = document.get("data") if isinstance(document, dict) else None
    if not isinstance(rows, list):
        return None
    names = [name for row in rows if isinstance(row, dict) for name in (row.get("id"), *_listed(row.get("aliases")))]
    return list(dict.fromkeys(name for name in names if isinstance(name, str) and name))


def generated_tokens(page: Page | None) -> int | None:
    """Tokens of one answer; None: it is no answer (an error body, no choice, nothing generated)."""
    document = page.json() if page else None
    choices = _listed(document.get("choices")) if isinstance(document, dict) else []
    if not isinstance(document, dict) or "error" in document or not choices:
        return None
    usage = document.get("usage")
    count = usage.get("completion_tokens") if isinstance(usage, dict) else None
    if isinstance(count, int) and not isinstance(count, bool):
        return count if count > 0 else None
    choice = choices[0] if isinstance(choices[0], dict) else {}
    message = choice.get("message")
    text = choice.get("text") or (message.get("content") if isinstance(message, dict) else None)
    return 1 if text else None


def _listed(value: Any) -> Sequence[Any]:
    """A list as it is; anything else in its place is none."""
    return value if isinstance(value, list) else ()


def _health(page: Page | None) -> Readiness | None:
    """None: healthy."""
    if page is None:
        return Readiness("not_serving", "health was not asked")
    if page.ok:
        return None
    if page.error is not None:
        return Readiness("loading", f"the port does not answer yet: {page.error}")
    if page.status == 503:
        return Readiness("loading", f"health says 503: {page.body[:120].strip()}")
    return Readiness("not_serving", f"health says {page.said()}")


def _said(page: Page | None) -> str:
    if page is None:
        return "not asked"
    return f"{page.said()}{': ' + page.body[:160].strip() if not page.ok and page.body else ''}"
