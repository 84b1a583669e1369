"""What a caller of `main` may put around a command's ports: a test of crashes stands between a run and its journal."""

from __future__ import annotations

from typing import Protocol

import click

from changectl.core.ports import Journal


class Around(Protocol):
    """Given to `main`; the command in it then works through what this returns."""

    def journal(self, journal: Journal) -> Journal:
        """The journal that the run writes to, in place of `journal`."""


def around_journal(journal: Journal) -> Journal:
    """The journal of the command that runs now, with what the caller of `main` put around it."""
    context = click.get_current_context(silent=True)
    around: Around | None = None if context is None else context.find_root().obj
    return journal if around is None else around.journal(journal)
