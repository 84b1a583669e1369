"""The new value contradicts no other line of the service file: else the engine would come up where nobody looks.

A plan may change any parameter of an engine, also the one that says where it listens, what it loads or under which name
it answers. The service file says the same once more, and everything is measured and proven by what it says there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from changectl.core.engine import Engine
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 51
CHECK = Check("named_by_service", "required")
_EVERYWHERE = frozenset({"", "0.0.0.0", "::", "*"})  # noqa: S104 - addresses that an engine is told, not ours
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def check(situation: Situation) -> CheckResult:
    """Port, address, model and its name, against `endpoint` and `model` of the service file."""
    if situation.engine is None or situation.endpoint is None:
        return CHECK.unknown("not known what the service file says of the engine")
    word = (situation.setting.canonical or "") if situation.setting else ""
    compare = _WORDS.get(word)
    if compare is None:
        name = situation.name or "this"
        return CHECK.not_applicable(f"{name} says nothing of the endpoint or the model")
    return compare(situation, situation.endpoint)


def _port(situation: Situation, endpoint: str) -> CheckResult:
    if situation.to is None:
        return _default(situation, "port")
    parts = urlsplit(endpoint)
    expected = parts.port or (443 if parts.scheme == "https" else 80)
    if situation.to.strip().isdecimal() and int(situation.to) == expected:
        return CHECK.passed(f"the port of {endpoint}")
    return CHECK.failed(
        f"the engine would listen on port {situation.to}, and everybody, we too, would go on asking {endpoint}", _MOVED
    )


def _host(situation: Situation, endpoint: str) -> CheckResult:
    if situation.to is None:
        return _default(situation, "address")
    to, expected = situation.to.strip().strip("[]").lower(), (urlsplit(endpoint).hostname or "").lower()
    if to in _EVERYWHERE or to == expected or (to in _LOCAL and expected in _LOCAL and "localhost" in (to, expected)):
        return CHECK.passed(f"the engine still listens where {endpoint} leads")
    detail = f"the engine would listen on {situation.to} alone, and everybody, we too, would go on asking {endpoint}"
    if _is_name(expected) and to not in _LOCAL and "/" not in to:
        return CHECK.unknown(f"not known whether {expected} is the address {situation.to}", _MOVED)
    return CHECK.failed(detail, _MOVED)


def _model_path(situation: Situation, _endpoint: str) -> CheckResult:
    path = situation.model_path
    if path is None:
        return CHECK.unknown("the service file's model is not known")
    if situation.to is None:
        return _default(situation, "model")
    if situation.to.rstrip("/") == path.rstrip("/") or situation.to.startswith(path.rstrip("/") + "/"):
        return CHECK.passed(f"the model that the service file names: {path}")
    return CHECK.failed(
        f"the engine would load {situation.to}, and the service file says `model: {{path: {path}}}`",
        "another model is another kind of change than a parameter: it needs its own files checked and saved. Let both "
        "models lie under `path`, or change `model: path` in the service file in the same commit and restart by hand",
    )


def _model_name(situation: Situation, _endpoint: str) -> CheckResult:
    expected = situation.expected_model
    if expected is None:
        return CHECK.passed("the service file gives the model no name")
    if situation.to is None:
        return _default(situation, "name")
    if expected in situation.to.replace(",", " ").split():
        return CHECK.passed(f"the model still answers to {expected}")
    return CHECK.failed(
        f"the model would answer to {situation.to} alone, and everybody, we too, would go on asking for {expected}",
        f"keep the old name among the new ones (`{expected}`), or change `model: name` in the service file in the same "
        "commit and restart by hand: a service that is renamed is another kind of change",
    )


_MOVED = (
    "a service that moves is another kind of change: whoever calls it has to follow. Change `endpoint` in the service "
    "file in the same commit and restart by hand"
)


def _default(situation: Situation, what: str) -> CheckResult:
    engine: Engine | None = situation.engine
    name = engine.name if engine else "the engine"
    return CHECK.unknown(
        f"without {situation.name} the {what} is the default of this version of {name}, which is not known here",
        f"write the {what} that the service file names instead of `absent`",
    )


def _is_name(host: str) -> bool:
    return ":" not in host and not host.replace(".", "").isdecimal() and host not in _LOCAL


_WORDS: Mapping[str, Callable[[Situation, str], CheckResult]] = {
    "port": _port,
    "host": _host,
    "model_path": _model_path,
    "model_name": _model_name,
}
