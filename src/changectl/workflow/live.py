"""Look at a service now: its engine's page and its host, in two calls over the open door."""

from __future__ import annotations

from typing import Any

from changectl.core.engine import Page
from changectl.core.observed import Sampled
from changectl.core.telemetry.engine_page import read_page
from changectl.core.telemetry.live import LiveSample
from changectl.workflow.target import Target


def read_live(target: Target, *, nvml: str | None = None, within: float = 5.0) -> LiveSample:
    """One look; what the engine or the host does not tell is missing, with the reason.

    Args:
        target: the instance.
        nvml: the source of NVML's bindings (`Tools.nvml_source()`) where the host has a GPU.
        within: seconds that the engine's page may take.

    Raises:
        HostCallError, ContactLost: the host could not be asked. An engine that does not answer is no error.
    """
    page = engine_page(target, within)
    args: dict[str, Any] = {"action": "once", "manager": target.manager_argument, "nvml": nvml}
    answer = Sampled.read(target.ask("sample", args))
    look = answer.look
    process = look.get("process")
    return LiveSample(
        at=look["at"],
        process=None if process is None else (process[0], process[1]),
        engine=read_page(target.engine.metric_table, page, target.service.model.name),
        look=look,
        missing=answer.missing,
        threads=answer.threads,
    )


def engine_page(target: Target, within: float = 5.0) -> Page | None:
    """The engine's metrics page alone; None: it has none."""
    return target.pages(answer=False, within=within, only="metrics").get("metrics")
