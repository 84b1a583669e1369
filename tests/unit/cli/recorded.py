"""A story of the fake hosts as a real record on disk, for commands that read records."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.workflow.stage import Stage

from changectl.core.ports import Event
from changectl.store import open_store
from changectl.store.database import Database
from changectl.store.migrations import MIGRATIONS
from changectl.store.store import Store

Body = dict[str, Any]


def keep(stage: Stage, folder: Path, alter: Callable[[str, Body], None] = lambda kind, body: None) -> None:
    """Append all that happened on a stage to the record of the project in `folder`, its evidence with it.

    Args:
        stage: the story.
        folder: the project's.
        alter: may change a body before it is recorded: what an earlier program, or a mistake, would have written.
    """
    (folder / "changectl.toml").touch()
    place, moments = folder / ".changectl", iter([event.at for event in stage.journal.lines])
    with open_store(place / "changectl.db", place / "key"):
        pass  # made as ever; below it is written at the times of the story
    database = Database.open(place / "changectl.db", busy_seconds=5.0, migrations=MIGRATIONS)
    with Store(database, place / "key", lambda: next(moments)) as store:
        for data in stage.records.blobs.values():
            store.records.put_blob(data)
        for event in _altered(stage.journal.lines, alter):
            store.journal.append(event.run, event.kind, event.body, step=event.step)


def _altered(events: Iterable[Event], alter: Callable[[str, Body], None]) -> Iterable[Event]:
    for event in events:
        body = copy.deepcopy(dict(event.body))
        alter(event.kind, body)
        yield dataclasses.replace(event, body=body)


def blob(folder: Path, body: Mapping[str, Any]) -> Path:
    """Where the raw records of a `measure.outcome` lie."""
    digest = body["blob"]
    return folder / ".changectl" / "blobs" / digest[:2] / digest
