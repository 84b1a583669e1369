"""Ctrl-C and kill as a safe ending: an interrupt is raised where the run asks for it, never in the middle of anything.

A signal is only remembered. Whatever waits (for a host, for the model, for a person) asks `check` several times a
second, so nobody waits long, and no half-sent request, half-read answer or half-written record is left behind.

A second signal ends the process at once, as if it were killed: what then stands on hosts is for their dead-man.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME = 0.5  # seconds in which a further signal is the same wish: a closed terminal sends several


class Interrupted(KeyboardInterrupt):
    """Somebody asked the run to end; it passes every `except Exception`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"interrupted by {name}")
        self.name = name


def go_on() -> None:
    """The default answer to a second signal: none; the way back goes on."""


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into `Interrupted` at the next `check` outside of side effects.

    Attributes:
        abandon: called in the signal handler at the second signal; it does not come back, or the run goes on.
        watch: called at each `check`; raises when something else than a person ends the run.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.abandon: Callable[[], None] = go_on
        self.watch: Callable[[], None] = go_on
        self._shields = 0
        self._pending: str | None = None
        self._first: float | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Own the signals for the length of a run; the previous handlers come back afterwards."""
        self._first = None
        before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """A side effect: it runs to its end, whatever is asked; then a signal that came meanwhile is raised."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        self.check()

    @contextmanager
    def ignored(self) -> Iterator[None]:
        """The way back: a first signal neither stops it nor is raised after it."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            self._pending = None

    def check(self) -> None:
        """Raise what was held back, if nothing shields any more."""
        if self._shields:
            return
        if self._pending is not None:
            name, self._pending = self._pending, None
            raise Interrupted(name)
        self.watch()

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        now = self._now()
        if self._first is not None and now - self._first > SAME:
            self.abandon()
        self._first = self._first if self._first is not None else now
        self._pending = signal.Signals(number).name
