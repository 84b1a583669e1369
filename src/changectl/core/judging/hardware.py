"""What of a host decides how fast a service is there: whether one instance's trial says anything about another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from changectl.core.judging.conditions import Fingerprint, differences

SAME_MEMORY = 0.02  # hosts of one kind differ by what their firmware keeps for itself


@dataclass(frozen=True, slots=True)
class Hardware:
    """A host's processors, GPUs and engine, and its memory in bytes; None: not known."""

    parts: Fingerprint
    memory: float | None

    def unlike(self, first: Hardware) -> list[str]:
        """What differs from the first instance's host, each with both values; empty: nothing does.

        What is not known of either counts as different: nothing is taken over for lack of data.
        """
        found = [str(difference) for difference in differences(first.parts, self.parts)]
        known = sorted({*first.parts.unknown(), *self.parts.unknown()})
        found += [f"{name}: not known" for name in known if not any(text.startswith(f"{name}:") for text in found)]
        return found + self._other_memory(first)

    def _other_memory(self, first: Hardware) -> list[str]:
        if self.memory is None or first.memory is None:
            return ["memory: not known"]
        if abs(self.memory - first.memory) <= SAME_MEMORY * max(self.memory, first.memory):
            return []
        return [f"memory: {first.memory / 1e9:.0f} GB -> {self.memory / 1e9:.0f} GB"]


def hardware(host: Mapping[str, Any], engine_version: str | None) -> Hardware:
    """From a host's own answer.

    Args:
        host: the answer of the host call `host`.
        engine_version: as the engine tells it; None where it exposes none, which then is alike everywhere.
    """
    cpus, gpu, memory = (_group(host, name) for name in ("cpus", "gpu", "memory"))
    total = memory.get("total")
    parts = {
        "machine": host.get("machine"),
        "processors": _all_known([cpus.get("model"), cpus.get("count"), cpus.get("usable")]),
        "gpu": _gpus(gpu),
        "engine_version": engine_version or "not exposed",
    }
    return Hardware(Fingerprint(parts), float(total) if isinstance(total, int | float) else None)


def _gpus(gpu: Mapping[str, Any]) -> list[str] | None:
    """The GPUs and their driver; empty: there are none. None: what there is is not told."""
    if gpu.get("present") is False and not gpu.get("amd"):
        return []
    models = gpu.get("models")
    if not isinstance(models, list) or not models or not all(models) or not gpu.get("driver"):
        return None
    return [*map(str, models), f"driver {gpu.get('driver')}"]


def _all_known(figures: list[Any]) -> list[Any] | None:
    """None where one is missing: what is known of a part does not tell that the parts are alike."""
    return figures if all(figures) else None


def _group(host: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = host.get(name)
    return found if isinstance(found, Mapping) else {}
