"""What the journal says about a run, read without any code of changectl: standard library only, as its judge."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def brief(out: str, err: str) -> str:
    """Why a command with `--json` ended as it did, in one line."""
    try:
        document = json.loads(out)
    except ValueError:
        return " ".join((err or out).split())[-600:]
    if "error" in document:
        return f"{document['error'].get('reason')}: {document['error'].get('message')}"
    texts = [f"{step.get('outcome')}, {step.get('reason')}: {step.get('text')}" for step in document.get("steps", [])]
    if not document.get("reason") and not texts:
        return " ".join(out.split())[-600:]
    return "; ".join([str(document.get("reason")), *texts])


@dataclass(frozen=True)
class Told:
    """What the journal says about the run: its id, whether it was ended, and with which outcomes.

    `outcome` is that of the run, or of a later one that took it back; None: nothing is said yet.
    """

    run: str | None = None
    ended: bool = False
    outcome: str | None = None
    problem: str | None = None
    kinds: tuple[str, ...] = ()


def read_journal(database: Path) -> Told:
    """What the journal says about its first run; `problem` where it cannot be read.

    A copy is opened, read-only: even looking at a write-ahead log can write.
    """
    try:
        with TemporaryDirectory(prefix="judge-") as folder:
            copy = Path(folder) / "journal.db"
            shutil.copyfile(database, copy)
            log = database.with_name(database.name + "-wal")
            if log.exists():
                shutil.copyfile(log, copy.with_name(copy.name + "-wal"))
            with closing(sqlite3.connect(f"{copy.as_uri()}?mode=ro", uri=True)) as connection:
                rows = connection.execute("SELECT run, kind, body FROM event ORDER BY sequence").fetchall()
        return _told([(str(run), str(kind), json.loads(body)) for run, kind, body in rows])
    except FileNotFoundError:
        return Told()  # killed before there was a journal: then nothing was done either
    except (OSError, sqlite3.Error, ValueError) as error:
        return Told(problem=f"the journal cannot be read: {error}")


def _told(events: Sequence[tuple[str, str, Any]]) -> Told:
    opened = [(run, body) for run, kind, body in events if kind == "run.opened"]
    if not opened:
        return Told()
    first = opened[0][0]
    family = {first} | {run for run, body in opened if body.get("reverts") == first}
    outcome, ended = None, False
    for run, kind, body in events:
        if run in family and kind in ("step.closed", "run.closed"):
            outcome = body.get("outcome", outcome)
            ended = ended or kind == "run.closed"
    return Told(first, ended, outcome, None, tuple(kind for run, kind, _ in events if run == first))
