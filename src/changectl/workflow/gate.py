"""The gate between an instance and its users: closed before the instance is stopped, open again once it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from changectl.workflow.lease import HostLease


class Gate(Protocol):
    """What takes one instance out of service and puts it back; both may be asked for what is so already."""

    @property
    def controls(self) -> bool:
        """Whether there is anything that keeps users away while the instance is stopped."""

    @property
    def out_since(self) -> float | None:
        """Since when, by the monotonic clock, the instance is out of service; None: it is in."""

    @property
    def leases(self) -> Sequence[HostLease]:
        """What is held where users are switched."""

    def out(self) -> None:
        """Take it out, and prove that nothing is under way there any more.

        Raises:
            Refused: nobody else could serve meanwhile, or nobody knows; nothing was changed.
            NotKept: requests did not end in time; it is in service again.
            ChangectlError: the balancer did not do it.
        """

    def insist(self) -> None:
        """From here on the way back counts: what is under way is cut, if need be, and a gap in the record is no end."""

    def back(self) -> None:
        """Put it back. Raises ChangectlError: it is still out, until the balancer puts it back by itself."""


class OpenGate:
    """No traffic control: requests that come while the instance is stopped fail."""

    controls = False
    out_since: float | None = None
    leases: Sequence[HostLease] = ()

    def insist(self) -> None:
        """Nothing to do."""

    def out(self) -> None:
        """Nothing to do."""

    def back(self) -> None:
        """Nothing to do."""
