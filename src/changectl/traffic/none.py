"""No traffic control: the instance keeps getting requests, and those that come while it restarts fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class NoTraffic:
    """Nothing is switched, and the preview says so."""

    name = "none"
    controls = False

    def steps_out(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG002 - part of the protocol
        """Nothing to do."""
        return []

    def steps_in(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:  # noqa: ARG002 - part of the protocol
        """Nothing to do."""
        return []

    def impact(self) -> str:
        """Said in the preview."""
        return "no traffic control: requests that come while the instance restarts fail"


TRAFFIC = NoTraffic()
