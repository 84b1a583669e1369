"""Intent before every side effect, outcome after it: the only way in which the workflow acts on the world."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from changectl.core.errors import ChangectlError
from changectl.core.ports import Journal, Json
from changectl.workflow.secrets import Secrets


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

    def note(self, kind: str, body: Json) -> None:
        """Commit a fact; known secrets in it are replaced.

        Raises:
            ChangectlError: it cannot be stored; never while insisting.
        """
        try:
            self.journal.append(self.run, kind, self.secrets.clean(body), step=self.step)
        except Exception:
            if not self.insist:
                raise

    @contextmanager
    def acting(self, name: str, body: Json) -> Iterator[dict[str, Any]]:
        """Commit the intent, yield the outcome to be filled in, commit it; a failure is an outcome too.

        When the intent cannot be committed the side effect does not happen.
        """
        self.note(f"{name}.intent", body)
        outcome: dict[str, Any] = {}
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
