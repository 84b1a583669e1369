"""Everything of one record, opened together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from changectl.core.audit.chain import Finding
from changectl.core.redaction.redactor import Tripwire
from changectl.store import schema
from changectl.store.blobs import BlobFolder
from changectl.store.database import Database
from changectl.store.journal import SqlJournal
from changectl.store.keys import KeyFile
from changectl.store.locks import Locks
from changectl.store.migrations import MIGRATIONS, Migration
from changectl.store.records import FiledRecords
from changectl.store.snapshots import SnapshotFolder


def utc_now() -> str:
    """The controller's clock: ISO 8601 in UTC with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


class Store:
    """The record of one project: `journal`, `records` and `locks` over one database."""

    def __init__(self, database: Database, key_file: Path, now: Callable[[], str] = utc_now) -> None:
        folder = database.path.parent
        self._database = database
        self._blobs = BlobFolder(folder / "blobs")
        self._key = KeyFile(key_file, database)
        self.journal = SqlJournal(database, now)
        self.locks = Locks(database, now)
        self.records = FiledRecords(self.locks, self._blobs, SnapshotFolder(folder / "snapshots", self._key))

    @classmethod
    def open(
        cls, path: Path, key_file: Path, *, busy_seconds: float, migrations: Sequence[Migration] = MIGRATIONS
    ) -> Store:
        """See `changectl.store.open_store`."""
        return cls(Database.open(path, busy_seconds=busy_seconds, migrations=migrations), key_file)

    def guard(self, tripwire: Tripwire) -> None:
        """From now on nothing in which the tripwire finds a secret enters the journal or the evidence."""
        self.journal.guard(tripwire)
        self._blobs.guard(tripwire)

    def redaction_salt(self) -> bytes:
        """The salt for digests of secret values: as secret as the key, so that nobody can guess values from the record.

        Raises:
            ChangectlError: the key is missing, wrong or exposed.
        """
        return self._key.derive("redaction")

    def verify_chain(self) -> list[Finding]:
        """What is wrong with the journal; nothing when every event is there, unchanged and in its place."""
        findings = self.journal.verify()
        with self._database.reading() as connection:
            gone = schema.missing_guards(connection)
        findings.extend(Finding("guard_missing", f"the trigger {name} is not as it was made") for name in gone)
        if self._database.path.stat().st_mode & 0o077:
            findings.append(Finding("readable_by_others", f"{self._database.path} can be read by others: chmod 600 it"))
        return findings

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
