"""Which instances a run left out of service, by its record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from changectl.core.history.events import DRAIN, UNDRAIN, intent, outcome, text_of
from changectl.core.ports import Event


@dataclass(frozen=True, slots=True)
class OutOfService:
    """One instance that gets no requests because of a run.

    Attributes:
        instance: which.
        balancer: the inventory host that sends it none.
        folder: the run's folder there, with what was saved and what the dead-man does.
        since: when it was taken out.
        upstream: what the lease is on there.
    """

    instance: str
    balancer: str
    folder: str
    since: str
    upstream: str = ""


def put_back(events: Iterable[Event]) -> frozenset[str]:
    """Of a run's events: the folders on balancers of what it put or found back, whichever run took it out."""
    return frozenset(
        text_of(event.body, "folder") for event in events if event.kind == outcome(UNDRAIN) and event.body.get("ok")
    )


def left_out(events: Iterable[Event]) -> dict[str, OutOfService]:
    """Of a run's events: the instances that were taken out of service and of which nothing says that they are back."""
    found: dict[str, OutOfService] = {}
    for event in events:
        name, folder = text_of(event.body, "host"), text_of(event.body, "folder")
        if event.kind == intent(DRAIN):
            balancer, upstream = text_of(event.body, "balancer"), text_of(event.body, "upstream")
            found[name] = OutOfService(name, balancer, folder, event.at, upstream)
        elif event.kind == outcome(UNDRAIN) and event.body.get("ok") and name in found and found[name].folder == folder:
            del found[name]
    return found
