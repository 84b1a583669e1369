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


def out_if_possible(hold: Hold) -> None:
    """As `out_of_service`, on the way back: what stands in its way is told, and stops nothing."""
    try:
        hold.gate.out()
    except Exception as error:  # noqa: BLE001 - the way back matters more
        hold.tools.reporter.note(f"{hold.target.name}: not taken out of service before it is restored: {error}")


def back_in_service(hold: Hold) -> None:
    """Put the instance back into service, once what runs there is proven. Raises ChangectlError: it is still out."""
    hold.gate.back()


def back_if_possible(hold: Hold) -> str:
    """As `back_in_service`, on the way back; returns "" or, as a sentence, that it is still out and what follows."""
    try:
        hold.gate.back()
    except Exception as error:  # noqa: BLE001 - what was to be restored is restored
        return f". It is still out of service ({error}); its balancer puts it back by itself once it answers there"
    return ""
