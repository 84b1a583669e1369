"""What is going on, on stderr: one living line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import select
import sys
import time
from collections.abc import Callable

from changectl.reports import _figures as figures
from changectl.reports._commands import apart
from changectl.reports._safe import safe
from changectl.reports.printer import Printer
from changectl.workflow.secrets import Secrets

SHOW_AFTER = 2.0  # seconds; what takes less needs no words
EVERY = 10.0  # seconds between lines where there is no terminal
ANSWER_WITHIN = 600.0  # seconds that a question waits for its answer


class ProgressReporter:
    """Fulfils core.ports.Reporter."""

    def __init__(self, printer: Printer, secrets: Secrets) -> None:
        self._printer = printer
        self._secrets = secrets
        self._terminal = printer.err.isatty()
        self._living = False
        self._last = 0.0

    def note(self, text: str) -> None:
        """One finished thing."""
        self.close()
        self._printer.note(apart(figures.spoken(self._secrets.redactor.known(text))))

    def waiting(self, what: str, *, elapsed: float, expected: float | None) -> None:
        """Something takes time."""
        now = time.monotonic()
        if elapsed < SHOW_AFTER or now - self._last < (0.2 if self._terminal else EVERY):
            return
        self._last = now
        known = "" if expected is None else f" of about {expected:.0f} s"
        text = self._secrets.redactor.known(f"{what}: {elapsed:.0f} s{known}")
        if not self._terminal:
            self._printer.note(text)
            return
        self._printer.err.write(f"\r\x1b[K{safe(text, lines=False)[:110]}")
        self._printer.err.flush()
        self._living = True

    def close(self) -> None:
        """Take the living line away."""
        if self._living:
            self._living = False
            with contextlib.suppress(OSError, ValueError):  # a terminal that is gone changes nothing
                self._printer.err.write("\r\x1b[K")


def ask_person(question: str, check: Callable[[], None]) -> bool:
    """A yes-or-no question on a terminal; no terminal, no answer within ten minutes, or anything but yes is no.

    Args:
        question: what is asked.
        check: called while nobody answers; raises when somebody asks the run to end.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    try:
        sys.stderr.write(f"{safe(question)} [yes/No] (no after {ANSWER_WITHIN / 60:.0f} minutes): ")
        sys.stderr.flush()
    except OSError:
        return False  # the terminal is gone
    deadline = time.monotonic() + ANSWER_WITHIN
    while not select.select([sys.stdin], [], [], 0.2)[0]:
        check()
        if time.monotonic() >= deadline:
            return False
    return sys.stdin.readline().strip().lower() in ("y", "yes")
