"""Around everything that stops an instance: out of service before, back in service once it is proven to answer.

Where the service has no traffic control both do nothing. Both may be called for what is so already.
"""

from __future__ import annotations

from changectl.workflow.hold import Hold


def out_of_service(hold: Hold) -> None:
    """Take the instance out of service, before it is stopped for the first time.

    Raises:
        Refused: no other instance can serve meanwhile, or nobody knows; nothing was changed.
        NotKept: its requests did not end in time; it is in service again.
        ChangectlError: the balancer did not do it.
    """
    hold.gate.out()


def back_in_service(hold: Hold) -> None:
    """Put the instance back into service, once what runs there is proven. Raises ChangectlError: it is still out."""
    hold.gate.back()
