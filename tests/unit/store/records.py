"""A real record with everything that an audit looks at, and what somebody with the right to write can do to it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from changectl.core.audit.chain import GENESIS, event_hash
from changectl.store import open_store, schema
from changectl.store.store import Store

KEPT, REVERTED, CUT = "20261130-081502-chat-k3f7", "20261130-090000-chat-b2c4", "20261130-100000-chat-x9y8"


@dataclass(frozen=True)
class Record:
    """A record on disk, with what the hosts remember of it."""

    path: Path
    heads: dict[str, list[dict[str, Any]]]

    @property
    def key(self) -> Path:
        return self.path.parent / "changectl.key"

    @property
    def blob(self) -> Path:
        return self._first("blobs")

    @property
    def snapshot(self) -> Path:
        return self._first("snapshots")

    def copy(self, folder: Path) -> Record:
        shutil.copytree(self.path.parent, folder)
        return Record(folder / self.path.name, json.loads(json.dumps(self.heads)))

    def heads_file(self) -> Path:
        file = self.path.parent / "heads.json"
        file.write_text(json.dumps({"hosts": self.heads}))
        return file

    def _first(self, folder: str) -> Path:
        return min(path for path in (self.path.parent / folder).rglob("*") if path.is_file())


def act(store: Store, run: str, action: str, intent: dict[str, Any] | None = None, **outcome: Any) -> dict[str, Any]:
    """Intent and outcome of a side effect in step 1; returns the journal's head in between."""
    begun = store.journal.append(run, f"{action}.intent", {"host": "gpu1", **(intent or {})}, step=1)
    store.journal.append(run, f"{action}.outcome", {"host": "gpu1", "ok": True, **outcome}, step=1)
    return {"sequence": begun.sequence, "hash": begun.hash}


def a_run(store: Store, run: str, outcome: str, heads: list[dict[str, Any]]) -> None:
    """As `apply` records one, shortened; the host's memory goes to `heads`."""
    folder = {"folder": f"{run}.1"}
    store.journal.append(run, "run.opened", {"service": "chat", "hosts": ["gpu1"], "steps": []})
    copy = store.records.put_snapshot(f"{run}.1", "gpu1", f"saved before {run}".encode())
    act(store, run, "capture", copy=copy, model=store.records.put_blob(b'{"model": 1}'))
    head = act(store, run, "arm", folder, armed=True)
    heads.append({"at": "2026-11-30T08:15:20Z", "run": f"{run}.1", "what": "armed", **head})
    act(store, run, "write", {"path": "/etc/vllm/chat.yaml"})
    act(store, run, "measure", blob=store.records.put_blob(f"records of {run}\n".encode() * 50))
    if outcome == "cut":
        store.journal.append(run, "restart.intent", {"host": "gpu1"}, step=1)
        return
    begun = store.journal.append(run, "disarm.intent", {"host": "gpu1", **folder}, step=1)
    head = {"sequence": begun.sequence, "hash": begun.hash}
    store.journal.append(run, "disarm.outcome", {"host": "gpu1", "ok": True, "head": head}, step=1)
    heads.append({"at": "2026-11-30T08:25:00Z", "run": f"{run}.1", "what": "disarmed", **head})
    store.journal.append(run, "step.closed", {"outcome": outcome}, step=1)
    store.journal.append(run, "run.closed", {"outcome": outcome, "exit_code": 0})


def build(folder: Path) -> Record:
    """Two closed runs and one that was cut off in the middle of a restart."""
    heads: list[dict[str, Any]] = []
    with open_store(folder / "changectl.db") as store:
        a_run(store, KEPT, "kept", heads)
        a_run(store, REVERTED, "reverted", heads)
        a_run(store, CUT, "cut", heads)
    return Record(folder / "changectl.db", {"gpu1": heads})


@contextmanager
def unguarded(path: Path, *, put_back: bool = True) -> Iterator[sqlite3.Connection]:
    """Somebody who takes the triggers away first, and puts them back when he is done."""
    raw = sqlite3.connect(path, isolation_level=None)
    try:
        for name in schema.TRIGGERS:
            raw.execute(f"DROP TRIGGER {name}")
        yield raw
        for statement in schema.TRIGGERS.values() if put_back else ():
            raw.execute(statement)
    finally:
        raw.close()


def close_ranks(raw: sqlite3.Connection) -> None:
    """Number all events anew, and compute all hashes anew: the chain looks as if nothing had happened."""
    rows = raw.execute("SELECT run, step, kind, at, body FROM event ORDER BY sequence").fetchall()
    raw.execute("DELETE FROM event")
    prev = GENESIS
    for number, row in enumerate(rows, 1):
        digest = event_hash(prev, *row)
        raw.execute("INSERT INTO event VALUES (?,?,?,?,?,?,?,?)", (number, *row, prev, digest))
        prev = digest
