"""What ends a run from outside while it holds leases: a host that says its lease is over, a person's second signal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from changectl.core.errors import LeaseLost
from changectl.workflow.interrupts import go_on
from changectl.workflow.lease import HostLease
from changectl.workflow.tools import Tools

LEFT_TO_HOSTS = 9
NOTHING_ARMED = 130


@contextmanager
def watching(tools: Tools, leases: Callable[[], Iterable[HostLease]]) -> Iterator[None]:
    """Within it, a lost lease ends whatever waits, and a second signal ends the process.

    Args:
        tools: the ports.
        leases: those that the run holds at the time when it is asked.
    """

    def watch() -> None:
        for lease in leases():
            if (why := lease.ends_run) is not None:
                raise LeaseLost(f"the lease was lost: {why}")

    def abandon() -> None:
        armed = [lease for lease in leases() if lease.armed is not False]
        lines = [_promise(lease, tools) for lease in armed] or [
            "nothing was changed on any host; hosts are free again when the lease is over, or after changectl recover"
        ]
        tools.leave("\n".join(["left at once, as was asked:", *lines]), LEFT_TO_HOSTS if armed else NOTHING_ARMED)

    interrupts = tools.interrupts
    interrupts.watch, interrupts.abandon = watch, abandon
    try:
        yield
    finally:
        interrupts.watch = interrupts.abandon = go_on


def _promise(lease: HostLease, tools: Tools) -> str:
    if lease.left is None:
        text = f"{lease.target.name}: if its dead-man is armed it {lease.target.promise}"
        return f"{text}; then: changectl recover {lease.recorder.run}"
    left = max(0.0, lease.left or 0.0)
    at = datetime.fromisoformat(tools.clock.now()) + timedelta(seconds=left)
    return (
        f"{lease.target.name}: its dead-man {lease.target.promise} in about {left:.0f} s, at "
        f"{at:%H:%M:%S} UTC, unless it runs already; then: changectl recover {lease.recorder.run}"
    )
