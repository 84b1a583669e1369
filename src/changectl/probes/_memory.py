"""How much more memory the change needs, as far as the engine lets that be computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from changectl.core.engine import MemoryNeed
from changectl.core.precheck import Situation

HEADROOM = 0.05  # share of what is free that stays free: allocators and page tables take their part


@dataclass(frozen=True, slots=True)
class Growth:
    """Needs before and after; `before` is None where it cannot be computed (then the whole of `after` counts)."""

    before: MemoryNeed | None
    after: MemoryNeed

    def host(self, *, with_gpu_part: bool) -> int | None:
        """Additional bytes of host memory; None: the engine does not say. Without a GPU its part lies there too."""
        parts = [self._more("host_bytes")] + ([self._more("gpu_bytes")] if with_gpu_part else [])
        known = [part for part in parts if part is not None]
        return sum(known) if known else None

    def gpu(self) -> int | None:
        """Additional bytes of GPU memory over all GPUs; None: the engine does not say."""
        return self._more("gpu_bytes")

    def _more(self, name: str) -> int | None:
        after: int | None = getattr(self.after, name)
        before: int | None = getattr(self.before, name) if self.before else None
        return None if after is None else after - (before or 0)


def growth(situation: Situation) -> Growth | None:
    """The needs with the settings as they are and as they would be; None: cannot be computed."""
    engine, after = situation.engine, situation.settings_after
    if engine is None or after is None:
        return None
    facts: Mapping[str, object] = situation.model.facts() if situation.model else {}
    needed = engine.memory_need(after, facts)
    if needed is None:
        return None
    return Growth(engine.memory_need(situation.settings_before or {}, facts), needed)


def has_gpu(situation: Situation) -> bool | None:
    """Whether the host has a usable GPU; None: not known."""
    driver = situation.host.gpu.present if situation.host and situation.host.gpu else None
    if situation.nvml is None:
        return driver
    # A host that has the device while NVML is silent is no host without a GPU.
    return True if situation.nvml.gpus else (None if driver else False)
