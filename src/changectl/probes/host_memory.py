"""Host memory carries the new value without living on swap, where the engine lets the need be computed."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation, format_bytes
from changectl.probes import _memory

ORDER = 42
CHECK = Check("host_memory", "required")


def check(situation: Situation) -> CheckResult:
    """What the change needs in addition against what is available now, with the service running."""
    if situation.engine is None:
        return CHECK.unknown("the engine is not known")
    growth = _memory.growth(situation)
    memory = situation.host.memory if situation.host else None
    available = memory.available if memory else None
    figure = "" if available is None else f"{format_bytes(available)} available"
    if growth is None:
        name = situation.engine.name
        reason = "its settings are not known" if situation.settings_after is None else f"{name} does not tell its needs"
        return CHECK.not_applicable(f"the need cannot be computed: {reason}", figure)
    gpu = _memory.has_gpu(situation)
    if gpu is None and growth.gpu():
        return CHECK.unknown("not known whether the memory comes from a GPU or from the host", figure=figure)
    more = growth.host(with_gpu_part=gpu is not True)
    if more is None or more <= 0:
        return CHECK.passed("the new value needs no more host memory", figure)
    if available is None:
        return CHECK.unknown(f"{format_bytes(more)} more is needed, and available memory is not known")
    figure = f"{format_bytes(more)} more needed, {figure}"
    if more > available * (1 - _memory.HEADROOM):
        return CHECK.failed("host memory does not carry the new value", "choose less, or free memory first", figure)
    return CHECK.passed(f"fits ({growth.after.how})", figure)
