"""Intent before every side effect, outcome after it: the only way in which the workflow acts on the world."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.errors import ChangectlError
from changectl.core.ports import Event, Journal, Json
from changectl.workflow.secrets import Secrets


class Deed(dict[str, Any]):
    """The outcome of a side effect while it happens; `intent` is the event that announced it, where it was stored."""

    intent: Event | None = None


@dataclass(frozen=True)
class Recorder:
    """The journal of one run, seen from one of its steps (0: the run itself)."""

    journal: Journal
    secrets: Secrets
    run: str
    step: int = 0
    insist: bool = False

    def insisting(self) -> Recorder:
        """For the way back: a record that cannot be written must not leave an unjudged configuration in force."""
        return replace(self, insist=True)

    def note(self, kind: str, body: Json) -> Event | None:
        """Commit a fact; known secrets in it are replaced. None: it could not be stored, and had not to be.

        Raises:
            ChangectlError: it cannot be stored; never while insisting.
        """
        try:
            return self.journal.append(self.run, kind, self.secrets.clean(body), step=self.step)
        except Exception:
            if not self.insist:
                raise
        return None

    @contextmanager
    def acting(self, name: str, body: Json) -> Iterator[Deed]:
        """Commit the intent, yield the outcome to be filled in, commit it; a failure is an outcome too.

        When the intent cannot be committed the side effect does not happen.
        """
        outcome = Deed()
        outcome.intent = self.note(f"{name}.intent", body)
        try:
            yield outcome
        except ChangectlError as error:
            self.note(f"{name}.outcome", {**outcome, "ok": False, "reason": error.reason, "message": str(error)})
            raise
        except BaseException as error:
            reason = str(getattr(error, "reason", type(error).__name__))  # why a step is not kept is a word too
            self.note(f"{name}.outcome", {**outcome, "ok": False, "reason": reason, "message": str(error)})
            raise
        self.note(f"{name}.outcome", {**outcome, "ok": True})
