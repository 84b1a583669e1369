"""The event loop: asyncio's own, with timers that are as exact as the clock."""

from __future__ import annotations

import asyncio
import select
import selectors
from typing import Any, Coroutine, List, Optional, Tuple, TypeVar

T = TypeVar("T")


class _ExactSelector(selectors.EpollSelector):
    """Waits to the microsecond.

    epoll waits whole milliseconds, rounded up, so that every planned request would be half a millisecond late. epoll's
    own descriptor can be waited for by select, which counts microseconds, and says when epoll has something.
    """

    def select(self, timeout: Optional[float] = None) -> List[Tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout > 0:
            select.select([self.fileno()], [], [], timeout)
            timeout = 0
        return super().select(timeout)


def run(program: Coroutine[Any, Any, T]) -> T:
    """Run it to its end, as `asyncio.run` does."""
    loop = asyncio.SelectorEventLoop(_ExactSelector())
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(program)
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        asyncio.set_event_loop(None)
        loop.close()
