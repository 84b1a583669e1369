"""The host that sends the load, as it was found before a change."""

from __future__ import annotations

from dataclasses import dataclass

from changectl.core.measuring.records import Record


@dataclass(frozen=True, slots=True)
class CallerSeen:
    """Who would send the load to an instance, and what came of one request from there. None: not known.

    Attributes:
        name: as the inventory calls the host; "": no load is sent.
        own: whether it is the instance's own host, which is looked at anyhow.
        trouble: why it cannot be asked to send anything; "": it can.
        python: the version that the load generator runs on there.
        address: the address from which its requests come.
        tried: the record of one request.
        failure: why the load generator did not run there, if it did not.
        endpoint: where it was sent: straight to the instance, or through the balancer.
    """

    name: str
    own: bool = False
    trouble: str = ""
    python: str | None = None
    address: str | None = None
    tried: Record | None = None
    failure: str | None = None
    endpoint: str | None = None
