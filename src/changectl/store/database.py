"""The one way to SQLite: connections with the right settings, and the two kinds of transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from changectl.core.errors import ChangectlError, Refused
from changectl.store import files, schema
from changectl.store.backup import make_backup
from changectl.store.migrations import MIGRATIONS, Migration

_WRITING = "changectl_writing"


class Database:
    """One SQLite file: WAL, every commit on disk, foreign keys and recursive triggers on.

    With `read_only` the file as it is: nothing is created, migrated or refused, and not a byte is written.
    """

    def __init__(self, path: Path, *, busy_seconds: float, read_only: bool = False) -> None:
        self.path = path
        self._busy_seconds = busy_seconds
        self._read_only = read_only
        self._file = _identity(path)
        self._engine = self._make_engine()

    @classmethod
    def open(cls, path: Path, *, busy_seconds: float, migrations: Sequence[Migration] = MIGRATIONS) -> Database:
        """Open or create the file, migrate it, and check that the journal's guards stand.

        An existing database is copied to a backup beside it before it is migrated.

        Raises:
            Refused: not our database, a newer one, or its guards are gone.
            ChangectlError: it cannot be opened or created.
        """
        try:
            files.make_folder(path.parent)
            files.create_private(path)
        except OSError as error:
            raise ChangectlError(f"cannot create {path}: {error.strerror}", reason="record_failed") from error
        database = cls(path, busy_seconds=busy_seconds)
        try:
            database._prepare(migrations)
        except BaseException:
            database.close()
            raise
        return database

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view of the database. Raises ChangectlError when it cannot be read."""
        with self._errors("read"), self._engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """The one writer (BEGIN IMMEDIATE); committed, on disk, when the block ends without an exception.

        Raises:
            ChangectlError: `record_failed`: locked for too long, disk full, refused by a trigger, or the file is not
                there any more: what is written into a deleted one is gone. Nothing is stored.
        """
        if _identity(self.path) != self._file:
            text = f"{self.path} was deleted or replaced since it was opened; nothing was recorded"
            raise ChangectlError(text, reason="record_failed")
        with self._errors("write"), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITING: True})
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Close every connection; the last process out folds the write-ahead log into the file."""
        self._engine.dispose()

    def _prepare(self, migrations: Sequence[Migration]) -> None:
        newest = migrations[-1].version
        with self.reading() as connection:
            current = schema.check_version(connection, migrations) == newest
        if not current:
            with self.writing() as connection:  # from here on nobody else writes: the backup is what is migrated
                version = schema.check_version(connection, migrations)
                if version and version != newest:
                    make_backup(self.path, version)
                if version != newest:
                    schema.migrate(connection, migrations)
        with self.reading() as connection:
            schema.assert_guards(connection, migrations)

    def _make_engine(self) -> Engine:
        mode = "ro" if self._read_only else "rw"  # never created here: `open` makes the file, with its mode
        query = {"uri": "true", "mode": mode}
        url = URL.create("sqlite", database=f"file:{quote(str(self.path.absolute()))}", query=query)
        engine = create_engine(url, connect_args={"timeout": self._busy_seconds, "check_same_thread": False})
        event.listen(engine, "connect", self._on_connect)
        event.listen(engine, "begin", _on_begin)
        return engine

    def _on_connect(self, connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
        # The driver must not begin transactions by itself: `_on_begin` says which kind.
        connection.isolation_level = None
        if self._read_only:
            return
        cursor = connection.cursor()
        try:
            for setting in ("synchronous = FULL", "foreign_keys = ON", "recursive_triggers = ON"):
                cursor.execute(f"PRAGMA {setting}")
            cursor.execute("PRAGMA journal_mode = WAL")
            mode = (cursor.fetchone() or ("unknown",))[0]
        finally:
            cursor.close()
        if mode != "wal":
            raise Refused(
                f"{self.path}: this file system cannot hold the record (journal mode {mode})", reason="no_wal"
            )

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            cause = getattr(error, "orig", None) or error
            if "not a database" in str(cause):
                raise Refused(f"{self.path} is not a changectl database", reason="not_our_database") from error
            raise ChangectlError(self._told(doing, str(cause)), reason="record_failed") from error

    def _told(self, doing: str, cause: str) -> str:
        """What SQLite said, and what to do about it where that is known."""
        if "locked" in cause:
            hint = (
                f"another process has kept it locked for more than {self._busy_seconds:g} s; fuser {self.path} names it"
            )
        elif "full" in cause:
            hint = f"make room on the file system of {self.path.parent}"
        elif "readonly" in cause:
            hint = f"{self.path} or its file system cannot be written"
        else:
            hint = ""
        nothing = "; nothing was recorded" if doing == "write" else ""
        return f"cannot {doing} {self.path}: {cause}{nothing}{f' ({hint})' if hint else ''}"


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file stands at a path; None: none that can be seen."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _on_begin(connection: Connection) -> None:
    # A reader must not take the write lock; a writer must take it first, or two could read the same head.
    writing = connection.get_execution_options().get(_WRITING, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
