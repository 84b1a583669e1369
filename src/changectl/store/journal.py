"""The journal: appends under the write lock, reads in order. Nothing here can change an event that is there."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, func, insert, select
from sqlmodel import SQLModel

from changectl.core.audit.chain import GENESIS, Finding, Line, event_hash, verify_chain
from changectl.core.errors import ChangectlError
from changectl.core.ports import Event, Json
from changectl.core.redaction.redactor import Tripwire
from changectl.store import tables
from changectl.store.database import Database

# Plain rows, not objects: an append costs half as much without the object layer.
_EVENT = SQLModel.metadata.tables[tables.Event.__name__.lower()]
_LINES = select(_EVENT).order_by(_EVENT.c.sequence)


class SqlJournal:
    """Fulfils `core.ports.Journal`, with the queries that reading commands need."""

    def __init__(self, database: Database, now: Callable[[], str]) -> None:
        self._database = database
        self._now = now
        self._tripwire = Tripwire(())

    def guard(self, tripwire: Tripwire) -> None:
        """From now on refuse every event in which the tripwire finds a secret."""
        self._tripwire = tripwire

    def append(self, run: str, kind: str, body: Json, *, step: int = 0) -> Event:
        """Commit one event; it is on disk when this returns.

        Raises:
            ChangectlError: `record_failed` when it cannot be stored, `secret_in_record` when it holds a known secret.
                Nothing is stored then, and nothing may be done either.
        """
        stored = encode(body)
        self._tripwire.check(f"event {kind} of run {run}", stored)
        with self._database.writing() as connection:
            sequence, prev = _head(connection)
            at = self._now()
            line = Line(sequence + 1, run, step, kind, at, stored, prev, event_hash(prev, run, step, kind, at, stored))
            connection.execute(insert(_EVENT), dataclasses.asdict(line))
        return _event(line)

    def events(self, run: str) -> Sequence[Event]:
        """All events of a run, oldest first; none when the run is unknown."""
        return self.select(runs=(run,))

    def select(self, *, runs: Collection[str] | None = None, kinds: Collection[str] | None = None) -> Sequence[Event]:
        """Events of these runs and these kinds (None: all), oldest first."""
        query = _LINES
        if runs is not None:
            query = query.where(_EVENT.c.run.in_(list(runs)))
        if kinds is not None:
            query = query.where(_EVENT.c.kind.in_(list(kinds)))
        with self._database.reading() as connection:
            return [_event(Line(*row)) for row in connection.execute(query)]

    def runs(self) -> list[str]:
        """The identifiers of all runs, in the order in which they began."""
        query = select(_EVENT.c.run).group_by(_EVENT.c.run).order_by(func.min(_EVENT.c.sequence))
        with self._database.reading() as connection:
            return [str(run) for run in connection.execute(query).scalars()]

    def head(self) -> tuple[int, str]:
        """Sequence and hash of the newest event; (0, GENESIS) when there is none. A witness keeps these two."""
        with self._database.reading() as connection:
            return _head(connection)

    def verify(self) -> list[Finding]:
        """Read the whole journal and check that it is one unbroken chain of unchanged events."""
        with self._database.reading() as connection:
            rows = connection.execute(_LINES.execution_options(yield_per=500))
            return verify_chain(Line(*row) for row in rows)


def encode(body: Json) -> bytes:
    """The JSON bytes of an event's body: ASCII, compact, keys in the order given.

    Raises:
        ChangectlError: the body holds what JSON cannot say (NaN, bytes, ...).
    """
    try:
        return json.dumps(dict(body), allow_nan=False, separators=(",", ":"), default=_plain).encode("ascii")
    except (TypeError, ValueError) as error:
        raise ChangectlError(f"this cannot be recorded: {error}", reason="record_failed") from error


def _plain(value: object) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _head(connection: Connection) -> tuple[int, str]:
    query = select(_EVENT.c.sequence, _EVENT.c.hash).order_by(_EVENT.c.sequence.desc()).limit(1)
    row = connection.execute(query).first()
    return (int(row[0]), str(row[1])) if row else (0, GENESIS)


def _event(line: Line) -> Event:
    return Event(line.sequence, line.run, line.step, line.kind, line.at, json.loads(line.body), line.hash)
