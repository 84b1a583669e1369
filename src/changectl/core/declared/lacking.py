"""Which metrics a service cannot give, so that a plan cannot expect or guard them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

_NO_TOKENS = "its answers come whole and not token by token"
_WHOLE = {
    "ttft_user": (_NO_TOKENS, "e2e_user"),
    "ttft_sent": (_NO_TOKENS, "e2e_sent"),
    "ttfo": (_NO_TOKENS, "e2e_sent"),
    "tpot": (_NO_TOKENS, "e2e_user"),
    "icl_max": (_NO_TOKENS, "e2e_user"),
    "out_tok_s": (_NO_TOKENS, "rps_ok"),
}
# Per protocol: metric -> why answers of that protocol do not show it, and what to write instead.
PROTOCOL_LACKS: Mapping[str, Mapping[str, tuple[str, str]]] = MappingProxyType({
    "openai_completions": {"ttfo": ("plain completions do not tell reasoning from the answer", "ttft_sent")},
    "openai_chat": {},
    "openai_embeddings": _WHOLE,
    "kserve_v2": _WHOLE,
})  # fmt: skip
_ENGINE_LACKS = {
    "generic": {"kv_capacity": ("an engine declared as generic does not say how much its cache holds", "")}
}


def lacking_metrics(engine: str, protocols: Sequence[str]) -> dict[str, str]:
    """Metrics that do not exist for an engine and every protocol it speaks: the reason and, after `; `, what to do."""
    of_first = PROTOCOL_LACKS.get(protocols[0], {}) if protocols else {}
    of_all = {
        name: why
        for name, why in of_first.items()
        if all(name in PROTOCOL_LACKS.get(protocol, {}) for protocol in protocols)
    }
    return {name: _told(*why) for name, why in {**of_all, **_ENGINE_LACKS.get(engine, {})}.items()}


def _told(reason: str, instead: str) -> str:
    return f"{reason}; name {f'`{instead}`' if instead else 'another metric'} instead"
