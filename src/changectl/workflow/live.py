"""Look at a service now, over the open door."""

from __future__ import annotations

from changectl.core.engine import Page
from changectl.workflow.target import Target


def engine_page(target: Target, within: float = 5.0) -> Page | None:
    """The engine's metrics page alone, which may take so many seconds; None: it has none."""
    return target.pages(answer=False, within=within, only="metrics").get("metrics")
