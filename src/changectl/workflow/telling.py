"""Telling a person what goes on, so that a closed terminal never decides what becomes of a service."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace

from changectl.core.ports import Reporter
from changectl.workflow.tools import Tools


@dataclass(frozen=True)
class Teller:
    """Fulfils core.ports.Reporter; nothing that goes wrong while telling comes out of it."""

    reporter: Reporter

    def note(self, text: str) -> None:
        """One finished thing."""
        with contextlib.suppress(Exception):
            self.reporter.note(text)

    def waiting(self, what: str, *, elapsed: float, expected: float | None) -> None:
        """Something takes time."""
        with contextlib.suppress(Exception):
            self.reporter.waiting(what, elapsed=elapsed, expected=expected)


def with_teller(tools: Tools) -> Tools:
    """The tools of a run that goes on although nobody can be told."""
    return replace(tools, reporter=Teller(tools.reporter))
