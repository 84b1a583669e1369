"""What earlier runs left behind that a new one wants to know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from changectl.core.cost import Spent
from changectl.core.errors import ChangectlError
from changectl.core.history.events import CALIBRATION, VERDICT, mapping_of, mappings_of, number_of
from changectl.core.history.out_of_service import OutOfService
from changectl.core.history.reading import SUMMARY_KINDS
from changectl.core.history.runs import open_work, runs, still_out
from changectl.core.observed import StatusProcess
from changectl.core.ports import Event, Records
from changectl.core.trial.noise_learned import Learned
from changectl.store.journal import SqlJournal

SAME_START = 5.0  # seconds; a clock that is set a little must not make another process of it


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

    def spent(self, service: str, load: Mapping[str, Any]) -> Spent:
        """How long starts, ways back and measurements with this very load took on the service so far.

        Args:
            service: its name.
            load: what the conditions of a measurement say about its load: workload, levels, length, ...
        """
        runs = self._runs(service)
        outs = [
            (event.body.get("after"), float(event.body["out_seconds"]))
            for event in self._journal.select(runs=runs, kinds=("ready.outcome",))
            if event.body.get("out_seconds") is not None
        ]
        return Spent(
            starts=[seconds for after, seconds in outs if after != "restore"],
            ways_back=[seconds for after, seconds in outs if after == "restore"],
            phases=_phases(self._journal.select(runs=runs, kinds=("measure.intent", "measure.outcome")), load),
        )

    def start_log(self, service: str, host: str, process: StatusProcess) -> list[str]:
        """What this very process said while an earlier run waited for its first answer; empty: that is not kept."""
        for event in reversed(self._journal.select(runs=self._runs(service), kinds=("ready.outcome",))):
            blob = event.body.get("log_blob")
            if event.body.get("host") == host and blob and _is_this(event.body.get("process") or {}, process):
                try:
                    return self._records.get_blob(blob).decode(errors="replace").splitlines()
                except ChangectlError:
                    return []
        return []

    def unfinished(self, service: str) -> list[str]:
        """Runs whose end is not recorded, or that need a person, and that nobody settled since."""
        events = self._journal.select(runs=self._runs(service), kinds=SUMMARY_KINDS)
        return [run.run for run in open_work(events)]

    def out_of_service(self, service: str) -> dict[str, OutOfService]:
        """Instances that earlier runs on the service left out of it, by name, as far as the record knows."""
        events = self._journal.select(runs=self._runs(service), kinds=SUMMARY_KINDS)
        return {one.instance: one for _, one in still_out(runs(events))}

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

    def learned(self) -> list[Learned]:
        """What all trials and calibrations found out about noise.

        Of a trial that went on in a later run it is that of the later run alone.
        """
        found = []
        for event in self._journal.select(kinds=(VERDICT, CALIBRATION)):
            noise = event.body.get("noise")
            if isinstance(noise, Mapping):
                with suppress(ValueError):  # of a newer program: not known, and no error
                    found.append(Learned.from_json(noise, event.at, event.run))
        runs = {one.run for one in found}
        opened = self._journal.select(runs=sorted(runs), kinds=("run.opened",))
        gone_on = {event.body.get("extends") for event in opened}
        return [one for one in found if one.run not in gone_on]

    def _runs(self, service: str) -> list[str]:
        opened = self._journal.select(kinds=("run.opened",))
        return [event.run for event in opened if event.body.get("service") == service]


def _phases(events: Sequence[Event], load: Mapping[str, Any]) -> list[float]:
    """Seconds that each measurement with this load would have taken at most, of those that came to their end."""
    begun: dict[tuple[str, int, Any], str] = {}
    found = []
    for event in events:
        key = (event.run, event.step, event.body.get("host"))
        if event.kind == "measure.intent":
            begun[key] = event.at
        elif (since := begun.pop(key, None)) and event.body.get("ok") and _is_with(event.body, load):
            took = (datetime.fromisoformat(event.at) - datetime.fromisoformat(since)).total_seconds()
            found.append(took + _spared(event.body))
    return found


def _spared(body: Mapping[str, Any]) -> float:
    """Seconds of their time that levels did not need: those of the next measurement may, and a price is the most."""
    levels = mappings_of(mapping_of(body, "summary"), "levels")
    asked = [(number_of(level, "asked_seconds"), number_of(level, "ended")) for level in levels]
    return sum(max(0.0, lasts - ended) for lasts, ended in asked if lasts is not None and ended is not None)


def _is_with(body: Mapping[str, Any], load: Mapping[str, Any]) -> bool:
    conditions = body.get("conditions")
    return isinstance(conditions, Mapping) and all(conditions.get(name) == value for name, value in load.items())


def _is_this(known: Mapping[str, Any], process: StatusProcess) -> bool:
    """Process ids and ticks since boot come again after the next boot; the time of the start does not."""
    if None in (process.start_ticks, process.started_at, known.get("started_at")):
        return False
    same = (known.get("pid"), known.get("start_ticks")) == (process.pid, process.start_ticks)
    return same and abs(float(known["started_at"]) - float(process.started_at or 0.0)) < SAME_START
