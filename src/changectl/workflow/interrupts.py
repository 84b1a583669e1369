"""Ctrl-C and kill as a safe ending: an interrupt is raised where the run asks for it, never in the middle of anything.

A signal is only remembered. Whatever waits (for a host, for the model, for a person) asks `check` several times a
second, so nobody waits long, and no half-sent request, half-read answer or half-written record is left behind.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """Somebody asked the run to end; it passes every `except Exception`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"interrupted by {name}")
        self.name = name


class Interrupts:
    """Turns SIGINT, SIGTERM and SIGHUP into `Interrupted` at the next `check` outside of side effects."""

    def __init__(self) -> None:
        self._shields = 0
        self._pending: str | None = None

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Own the signals for the length of a run; the previous handlers come back afterwards."""
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
        """The way back: a further signal neither stops it nor is raised after it."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
            self._pending = None

    def check(self) -> None:
        """Raise what was held back, if nothing shields any more."""
        if self._pending is not None and self._shields == 0:
            name, self._pending = self._pending, None
            raise Interrupted(name)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self._pending = signal.Signals(number).name
