"""What earlier runs left behind that a new one wants to know."""

from __future__ import annotations

import json

from changectl.core.errors import ChangectlError
from changectl.core.history import SUMMARY_KINDS
from changectl.core.history_runs import open_work
from changectl.core.ports import Records
from changectl.store.journal import SqlJournal


class RunMemory:
    """Fulfils core.ports.Memory from the journal."""

    def __init__(self, journal: SqlJournal, records: Records) -> None:
        self._journal = journal
        self._records = records

    def load_seconds(self, service: str) -> float | None:
        """How long the service's last good start took; None: never measured.

        Only a record that says that the process was started then counts: the age of one that went on is no load time.
        """
        for event in reversed(self._journal.select(runs=self._runs(service), kinds=("ready.outcome",))):
            if event.body.get("ok") and event.body.get("started"):
                return float(event.body["seconds"])
        return None

    def unfinished(self, service: str) -> list[str]:
        """Runs whose end is not recorded, or that need a person, and that nobody settled since."""
        events = self._journal.select(runs=self._runs(service), kinds=SUMMARY_KINDS)
        return [run.run for run in open_work(events)]

    def model_manifest(self, service: str, host: str) -> dict[str, object] | None:
        """The manifest that the last run on this instance took; None: none, or its evidence is gone."""
        for event in reversed(self._journal.select(runs=self._runs(service), kinds=("capture.outcome",))):
            if event.body.get("host") == host and event.body.get("model"):
                try:
                    manifest: dict[str, object] = json.loads(self._records.get_blob(event.body["model"]))
                except ChangectlError:
                    return None
                return manifest
        return None

    def _runs(self, service: str) -> list[str]:
        opened = self._journal.select(kinds=("run.opened",))
        return [event.run for event in opened if event.body.get("service") == service]
