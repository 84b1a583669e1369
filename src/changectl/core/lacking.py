"""Which metrics a service cannot give, so that a plan cannot expect or guard them."""

from __future__ import annotations

from collections.abc import Sequence

# Per protocol: metric -> why answers of that protocol do not show it.
_PROTOCOL_LACKS = {
    "openai_completions": {"ttfo": "plain completions do not tell reasoning from the answer"},
    "openai_chat": {},
}
_ENGINE_LACKS = {"generic": {"kv_capacity": "an engine declared as generic does not say how much its cache holds"}}


def lacking_metrics(engine: str, protocols: Sequence[str]) -> dict[str, str]:
    """Metrics that do not exist for an engine and every protocol it speaks, each with the reason."""
    lacking = dict(_ENGINE_LACKS.get(engine, {}))
    for name, why in _PROTOCOL_LACKS.get(protocols[0], {}).items() if protocols else ():
        if all(name in _PROTOCOL_LACKS.get(protocol, {}) for protocol in protocols):
            lacking[name] = why
    return lacking
