"""No traffic control: the instance keeps getting requests, and those that come while it restarts fail."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from changectl.core.declared.traffic_spec import Peer


class NoTraffic:
    """Nothing is switched, and the preview says so."""

    name = "none"
    controls = False
    host: str | None = None
    place = ""
    file: str | None = None
    member: str | None = None

    def way(self) -> Mapping[str, Any]:
        """Nothing to do."""
        return {}

    def impact(self) -> str:
        """Said in the preview."""
        return "no traffic control: requests that come while the instance restarts fail"

    def peers(self, data: bytes) -> tuple[Peer, ...] | None:  # noqa: ARG002 - part of the protocol
        """Nobody says who serves."""
        return None

    def taken_out(self, data: bytes) -> bytes | None:  # noqa: ARG002 - part of the protocol
        """Nothing to do."""
        return None

    def put_back(self, data: bytes) -> bytes:
        """Nothing to do."""
        return data


def make(spec: object) -> NoTraffic:  # noqa: ARG001 - all ways are made alike
    """There is nothing to be told."""
    return NoTraffic()
