"""The gate between an instance and its users: closed before the instance is stopped, open again once it answers."""

from __future__ import annotations

from typing import Protocol


class Gate(Protocol):
    """What takes one instance out of service and puts it back; both may be asked for what is so already."""

    @property
    def controls(self) -> bool:
        """Whether there is anything that keeps users away while the instance is stopped."""

    @property
    def out_since(self) -> float | None:
        """Since when, by the monotonic clock, the instance is out of service; None: it is in."""

    def out(self) -> None:
        """Take it out, and prove that nothing is under way there any more.

        Raises:
            Refused: nobody else could serve meanwhile, or nobody knows; nothing was changed.
            NotKept: requests did not end in time; it is in service again.
            ChangectlError: the balancer did not do it.
        """

    def back(self) -> None:
        """Put it back. Raises ChangectlError: it is still out, until the balancer puts it back by itself."""


class OpenGate:
    """No traffic control: requests that come while the instance is stopped fail."""

    controls = False
    out_since: float | None = None

    def out(self) -> None:
        """Nothing to do."""

    def back(self) -> None:
        """Nothing to do."""
