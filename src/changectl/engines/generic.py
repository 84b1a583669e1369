"""An engine that the service file describes: how it is ready, how it answers, its settings, its metrics page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from changectl import loads
from changectl.core.engine import Page, Pages, ProbeRequest, Readiness, Source
from changectl.core.errors import InputError, Problem
from changectl.core.settings import Setting
from changectl.core.telemetry.engine_page import read_page
from changectl.core.telemetry.engine_series import BY_NAME, TO_CANONICAL, MetricTable, Series
from changectl.engines import _openai, _values, _whole
from changectl.engines._base import BaseEngine

_READY = re.compile(r"(?P<method>GET|HEAD|POST)\s+(?P<path>/\S*)\s+(?P<status>[1-5]\d\d)")
_PAGE = re.compile(r"(:\d{1,5})?/\S*")
_TYPES = ("int", "float", "bool", "str", "json")
_BELONGS = {"int": "write a whole number", "float": "write a number", "bool": "write true or false"}
_SETTING_KEYS = {"flag", "env", "key", "type", "changes_answers"}
_TOKENS = "tokens"  # what a service file may call the generated ones
_METRIC_KEYS = {"page", _TOKENS, *BY_NAME}
_SERIES_KEYS = {"series", "unit", "histogram"}


class Generic(BaseEngine):
    """Everything it knows is what the operator wrote; what was not written is not exposed."""

    name = "generic"
    versions = "any"
    precedence: Sequence[Source] = ("flags", "env", "file")
    has_help = False  # an unknown program asked for help might start a second server

    def __init__(self, ready: tuple[str, str, int], answer: Mapping[str, Any] | None, settings: Sequence[Setting],
                 page: str | None, metrics: MetricTable) -> None:  # fmt: skip
        self.ready = ready
        self.protocols = (str(answer["protocol"]),) if answer else ()
        self.inputs = (answer or {}).get("inputs")
        self.settings = settings
        self.page = page
        self.metric_table = metrics

    @property
    def healthy_status(self) -> int:
        """The declared one."""
        return self.ready[2]

    def probes(
        self, endpoint: str, model_name: str | None, auth: Mapping[str, str] | None, *, answer: bool = True
    ) -> list[ProbeRequest]:
        """The declared health request, the list of models and one answer where a protocol is declared, the metrics."""
        base, headers = endpoint.rstrip("/"), _openai.auth_headers(auth)
        method, path, _ = self.ready
        requests = [ProbeRequest("health", f"{base}{path}", method, headers)]
        page = _page_url(base, self.page)
        if self.protocols:
            requests.append(ProbeRequest("models", f"{base}{self._models_path(model_name)}", headers=headers))
        if self.protocols and answer:
            requests += [ProbeRequest("metrics_before", page, headers=headers)] if page else []
            requests.append(self._answer_request(base, model_name, headers))
        return [*requests, ProbeRequest("metrics", page, headers=headers)] if page else requests

    @property
    def _whole(self) -> bool:
        """Whether answers come whole, and so not as text."""
        return bool(self.protocols) and not loads.load(self.protocols[0]).STREAMED

    def _models_path(self, model_name: str | None) -> str:
        return "/v1/models" if self.inputs is None else _whole.model_path(model_name)

    def _answer_request(self, base: str, model_name: str | None, headers: Mapping[str, str]) -> ProbeRequest:
        if self._whole:
            return _whole.answer_request(self.protocols[0], base, model_name, headers, self.inputs)
        return _openai.answer_request(self.protocols[0], base, model_name, headers)

    def effective(self, pages: Pages, log: Sequence[str] = ()) -> dict[str, str]:  # noqa: ARG002 - part of the protocol
        """Nothing: a described engine does not say what it works with."""
        return {}

    def readiness(self, pages: Pages, expected_model: str | None) -> Readiness:
        """The declared status, the right model where it lists models, a real answer where a protocol is declared."""
        health = pages.get("health")
        if health is None or health.status != self.ready[2]:
            said = "not asked" if health is None else health.said()
            waiting = health is not None and (health.error is not None or health.status == 503)
            return Readiness("loading" if waiting else "not_serving", f"health: {said}, expected {self.ready[2]}")
        models = pages.get("models")
        served = _openai.models(models) if self.inputs is None else _whole.model(models)
        if served is not None and expected_model is not None and expected_model not in served:
            return Readiness("wrong_model", f"serves {', '.join(served) or 'no model'}, expected {expected_model}")
        if not self.protocols:
            return Readiness("ready", "health as declared; no protocol declared, so no answer was asked for")
        return self._answered(pages)

    def unfit(self, setting: Setting, text: str) -> str:
        """Whether the text is of the type that the service file declares."""
        kind, belongs = setting.type, _BELONGS.get(setting.type)
        read = {"int": _values.parse_int, "float": _values.parse_float, "bool": _values.parse_bool}.get(kind)
        if belongs is None or read is None or read(text) is not None:
            return ""
        return f"`{text}` is no {kind}, which {setting.name} is declared to be; {belongs}"

    def token_counter(self, pages: Pages) -> float | None:
        """The series declared as `tokens`; None: none declared, or not on the page."""
        return self._tokens(pages.get("metrics"))

    def _answered(self, pages: Pages) -> Readiness:
        page = pages.get("answer")
        came = _whole.came(self.protocols[0], page) if self._whole else _tokens(page)
        if came is None:
            return Readiness("not_serving", f"healthy, but no real answer: {page.said() if page else 'not asked'}")
        before, after = self._tokens(pages.get("metrics_before")), self.token_counter(pages)
        if before is not None and after is not None and after <= before:
            return Readiness("not_serving", f"answered, but its token counter stands still at {after:g}")
        return Readiness("ready", f"answered {came}")

    def _tokens(self, page: Page | None) -> float | None:
        return read_page(self.metric_table, page).value("generated_tokens")


def _page_url(base: str, page: str | None) -> str | None:
    """Where the metrics stand: a path beside the answers, or `:PORT/path` on the same host; None: none declared."""
    if page is None or not page.startswith(":"):
        return None if page is None else f"{base}{page}"
    parts = urlsplit(base)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    return f"{parts.scheme}://{host}{page}"


def _tokens(page: Page | None) -> str | None:
    tokens = _openai.generated_tokens(page)
    return None if tokens is None else f"{tokens} tokens"


def make(description: Any) -> Generic:
    """Build the engine from `engine: {generic: {ready, answer, settings, metrics}}`.

    Raises:
        InputError: a part is missing or not understood; the path says which.
    """
    parts = _mapping(description, "")
    _known(parts, {"ready", "answer", "settings", "metrics"}, "")
    match = _READY.fullmatch(str(parts.get("ready", "")).strip())
    if match is None:
        raise _problem("a generic engine says how it is ready", "ready", 'for example: ready: "GET /healthz 200"')
    metrics = _mapping(parts.get("metrics") or {}, "metrics")
    _known(metrics, _METRIC_KEYS, "metrics")
    if set(metrics) - {"page"} and "page" not in metrics:
        raise _problem("series are named, but not the page they stand on", "metrics", "add: page: /metrics")
    if "page" in metrics and not _PAGE.fullmatch(str(metrics["page"])):
        raise _problem("that is no place of a page", "metrics/page", 'write /metrics, or ":8082/metrics"')
    rows = _mapping(parts.get("settings") or {}, "settings")
    settings = tuple(_setting(str(name), row) for name, row in rows.items())
    ready = (match["method"], match["path"], int(match["status"]))
    page = None if metrics.get("page") is None else str(metrics["page"])
    return Generic(ready, _answer(parts.get("answer")), settings, page, _table(metrics))


def _table(metrics: Mapping[str, Any]) -> MetricTable:
    named = {("generated_tokens" if name == _TOKENS else name): _series(name, value)
             for name, value in metrics.items() if name != "page"}  # fmt: skip
    return MetricTable({name: (series,) for name, series in named.items()})


def _series(name: str, value: Any) -> Series:
    path = f"metrics/{name}"
    parts = {"series": value} if isinstance(value, str) else _mapping(value, path)
    _known(parts, _SERIES_KEYS, path)
    timed = name in BY_NAME and BY_NAME[name].kind == "time"
    unit, histogram = parts.get("unit") or ("s" if timed else ""), bool(parts.get("histogram"))
    if unit not in TO_CANONICAL or timed == (unit in ("", "percent")):
        units = "s, ms, us or ns" if timed else "percent, for a share, or none"
        raise _problem(f"{name} cannot have the unit {unit!r}", f"{path}/unit", f"known: {units}")
    if histogram and not timed:
        raise _problem(f"{name} is one number and no histogram", f"{path}/histogram", "leave it out")
    if not parts.get("series"):
        raise _problem(f"{name} names no series", path, "for example: {series: app_queue_ms, unit: ms}")
    return Series(str(parts["series"]), unit, histogram)


def _answer(answer: Any) -> Mapping[str, Any] | None:
    if answer is None:
        return None
    parts = _mapping(answer, "answer")
    _known(parts, {"protocol", "inputs"}, "answer")
    if parts.get("protocol") not in loads.names():
        raise _problem(
            f"unknown protocol {parts.get('protocol')!r}", "answer/protocol", f"known: {', '.join(loads.names())}"
        )
    return parts


def _setting(name: str, row: Any) -> Setting:
    path = f"settings/{name}"
    parts = _mapping(row, path)
    _known(parts, _SETTING_KEYS, path)
    kind = parts.get("type", "str")
    if kind not in _TYPES:
        raise _problem(f"unknown type {kind!r}", f"{path}/type", f"known: {', '.join(_TYPES)}")
    flags = parts.get("flag") or ()
    flags = (flags,) if isinstance(flags, str) else tuple(str(flag) for flag in flags)
    if not (flags or parts.get("env") or parts.get("key")):
        raise _problem(f"setting {name} lives nowhere", path, "say flag, env or key; for example: {flag: --workers}")
    return Setting(name, flags, parts.get("env"), parts.get("key"), canonical=name, type=kind,
                   changes_answers=bool(parts.get("changes_answers", False)))  # fmt: skip


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _problem("a mapping is expected here", path, "see the reference page of the generic engine")
    return value


def _known(parts: Mapping[str, Any], allowed: set[str], path: str) -> None:
    for key in parts:
        if key not in allowed:
            raise _problem(f"unknown key {key!r}", f"{path}/{key}".lstrip("/"), f"known: {', '.join(sorted(allowed))}")


def _problem(message: str, path: str, hint: str) -> InputError:
    return InputError(Problem(message, path=f"engine/generic/{path}".rstrip("/"), hint=hint))
