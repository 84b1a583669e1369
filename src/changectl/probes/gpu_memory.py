"""GPU memory holds the new value, where the engine lets the need be computed. No GPU is a clean answer."""

from __future__ import annotations

from changectl.core.observed import Gpu
from changectl.core.precheck import Check, CheckResult, Situation, format_bytes
from changectl.probes import _memory

ORDER = 44
CHECK = Check("gpu_memory", "required")
_HINT = "choose less, or find out who else uses the GPU"


def check(situation: Situation) -> CheckResult:
    """Additional bytes against free memory, or a share of each GPU against what others leave."""
    if _memory.has_gpu(situation) is False and situation.nvml is None:
        return CHECK.not_applicable("no GPU on this host")
    if situation.nvml is None:
        return CHECK.unknown("the GPUs were not asked")
    if not situation.nvml.gpus and _memory.has_gpu(situation) is None:
        return CHECK.unknown(f"there is a GPU, but its memory cannot be read: {situation.nvml.none or 'not told'}")
    if not situation.nvml.gpus:
        return CHECK.not_applicable(f"no GPU: {situation.nvml.none or 'none found'}")
    if situation.engine is None:
        return CHECK.unknown("the engine is not known")
    gpus = situation.nvml.gpus
    free = [gpu.memory_free for gpu in gpus]
    figure = ", ".join("not told" if part is None else f"{format_bytes(part)} free" for part in free)
    growth = _memory.growth(situation)
    if growth is None:
        return CHECK.not_applicable(f"the need cannot be computed for {situation.engine.name}", figure)
    if growth.after.gpu_fraction is not None:
        before = growth.before.gpu_fraction if growth.before else None
        return _share(gpus, before, growth.after.gpu_fraction, figure)
    more = growth.gpu()
    if more is None or more <= 0:
        return CHECK.passed("the new value needs no more GPU memory", figure)
    known = [part for part in free if part is not None]
    figure = f"{format_bytes(more)} more needed, {figure}"
    if len(known) != len(free):
        return CHECK.unknown("a GPU does not tell its free memory", figure=figure)
    if more > sum(known) * (1 - _memory.HEADROOM):
        return CHECK.failed("GPU memory does not hold the new value", _HINT, figure)
    return CHECK.passed(f"fits ({growth.after.how})", figure)


def _share(gpus: list[Gpu], before: float | None, after: float, figure: str) -> CheckResult:
    """The engine takes a share of each GPU at its start; what other processes use has to lie beside it."""
    if before is not None and after <= before:
        return CHECK.passed("the new value takes no larger share of the GPUs", f"{before:g} to {after:g}; {figure}")
    figure = f"{after:g} of each GPU wanted; {figure}"
    for gpu in gpus:
        if gpu.memory_total is None or gpu.memory_used is None:
            return CHECK.unknown("a GPU does not tell its memory", figure=figure)
        if before is None:
            return CHECK.unknown("not known how much of the used memory is the service's own", figure=figure)
        others = max(0.0, gpu.memory_used - before * gpu.memory_total)
        if after * gpu.memory_total > gpu.memory_total - others:
            return CHECK.failed(f"others use {format_bytes(others)} of GPU {gpu.index}", _HINT, figure)
    return CHECK.passed("the share fits beside what others use", figure)
