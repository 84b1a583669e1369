"""Which metrics a service cannot give, so that a plan cannot expect or guard them."""

from __future__ import annotations

from collections.abc import Sequence

# Per protocol: metric -> why answers of that protocol do not show it.
_PROTOCOL_LACKS: dict[str, dict[str, str]] = {
    "openai_completions": {"ttfo": "plain completions do not tell reasoning from the answer"},
    "openai_chat": {},
}
_ENGINE_LACKS = {"generic": {"kv_capacity": "an engine declared as generic does not say how much its cache holds"}}


def lacking_metrics(engine: str, protocols: Sequence[str]) -> dict[str, str]:
    """Metrics that do not exist for an engine and every protocol it speaks, each with the reason."""
    of_first = _PROTOCOL_LACKS.get(protocols[0], {}) if protocols else {}
    of_all = {
        name: why
        for name, why in of_first.items()
        if all(name in _PROTOCOL_LACKS.get(protocol, {}) for protocol in protocols)
    }
    return {**of_all, **_ENGINE_LACKS.get(engine, {})}
