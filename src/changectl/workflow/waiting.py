"""Waiting for somebody else's change to end: shown, bounded, and ended by a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import TypeVar

from changectl.core.errors import Locked
from changectl.workflow.tools import Tools

LOOK_AGAIN = 2.0  # seconds

T = TypeVar("T")


def once_free(attempt: Callable[[], T], tools: Tools) -> T:
    """What `attempt` returns, tried again for as long as the operator wants to wait for a lock or lease.

    Raises:
        Locked: it is still held after that time; who holds it.
    """
    begun = tools.clock.monotonic()
    while True:
        try:
            return attempt()
        except Locked as error:
            waited = tools.clock.monotonic() - begun
            if waited >= tools.wait_seconds:
                raise
            tools.reporter.waiting(f"waiting: {error}", elapsed=waited, expected=tools.wait_seconds)
            tools.interrupts.check()
            tools.clock.sleep(min(LOOK_AGAIN, tools.wait_seconds - waited))


@contextmanager
def service_lock(service: str, run: str, tools: Tools) -> Iterator[Mapping[str, str] | None]:
    """Hold the service's one open change; gives the dead holder it was taken from. Raises Locked."""
    with ExitStack() as held:
        try:
            before = once_free(lambda: held.enter_context(tools.records.lock(service, run, tools.actor)), tools)
        except Locked as error:
            if tools.wait_seconds > 0:
                raise
            raise Locked(f"{error}\nto wait for its end, add for example --wait 30m") from None
        yield before
