"""Reads a record for an audit: as it lies there, whatever somebody did to it, and without writing a byte of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection

from changectl.core.audit.chain import Finding, Line
from changectl.core.audit.journal import Account, Reference
from changectl.core.audit.verdict import Audit, judge
from changectl.core.audit.witness import Witnesses
from changectl.core.errors import ChangectlError
from changectl.store import BUSY_SECONDS, schema
from changectl.store.blobs import BlobFolder, place
from changectl.store.database import Database
from changectl.store.keys import KeyFile
from changectl.store.snapshots import SnapshotFolder

# As bytes: text that is none any more must not end the reading. And with their types: a run's name that was stored as
# bytes has the same hash, and is found by no query for that run.
_ROWS = """
SELECT sequence, step, CAST(run AS BLOB), CAST(kind AS BLOB), CAST(at AS BLOB), CAST(prev AS BLOB), CAST(hash AS BLOB),
  CAST(body AS BLOB), typeof(run) || ' ' || typeof(kind) || ' ' || typeof(at) || ' ' || typeof(prev) || ' ' ||
  typeof(hash) || ' ' || typeof(step) || ' ' || typeof(body)
FROM event ORDER BY sequence
"""
_TYPES = "text text text text text integer blob"
_DAMAGE = ("malformed", "no such table", "no such column")  # what SQLite says of a file that is not whole


def audit(path: Path, key_file: Path, witnesses: Witnesses, *, busy_seconds: float = BUSY_SECONDS) -> Audit:
    """The verdict on the record at `path`. The hosts were asked before: they must not know more than is read now.

    Raises:
        Refused: it is no database of changectl's, or one of a newer changectl.
        ChangectlError: it cannot be read.
    """
    database = Database(path, busy_seconds=busy_seconds, read_only=True)
    try:
        account = read_account(database)
        return judge(account, list(kept_findings(account, database, key_file)), witnesses)
    finally:
        database.close()


def newest_event(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> int:
    """The sequence number of the journal's newest event; 0: there is none that can be read."""
    if not path.exists():
        return 0
    database = Database(path, busy_seconds=busy_seconds, read_only=True)
    try:
        with database.reading() as connection:
            return int(connection.exec_driver_sql("SELECT COALESCE(MAX(sequence), 0) FROM event").scalar_one())
    except ChangectlError:
        return 0  # the audit itself will say why
    finally:
        database.close()


def read_account(database: Database) -> Account:
    """The whole journal, and what is wrong with the database around it, in one consistent view.

    Raises:
        ChangectlError: it cannot be read at all.
    """
    account = Account()
    try:
        with database.reading() as connection:
            _read(connection, account)
    except ChangectlError as error:
        if not any(word in str(error) for word in _DAMAGE):
            raise
        at = account.last.sequence + 1 if account.last else 1
        account.found(Finding("damaged_database", f"from event {at} on: {error}", at))
    if database.path.stat().st_mode & 0o077:
        account.found(Finding("readable_by_others", f"{database.path} can be read by others: chmod 600 it"))
    return account


def kept_findings(account: Account, database: Database, key_file: Path) -> Iterator[Finding]:
    """What is wrong with the bytes that the journal names: evidence, and saved configuration where the key is there."""
    folder = database.path.parent
    blobs, snapshots = BlobFolder(folder / "blobs"), SnapshotFolder(folder / "snapshots", KeyFile(key_file, database))
    keyless: set[str] = set()
    for reference, sequence in account.references.items():
        if reference.kept == "snapshot" and keyless and _lies_in(folder / "snapshots", reference):
            continue
        try:
            (blobs if reference.kept == "blob" else snapshots).get(reference.digest)
        except ChangectlError as error:
            if error.reason.startswith("key_"):
                keyless.add(error.reason)
                yield Finding(error.reason, f"saved configurations cannot be checked: {error}")
            else:
                yield Finding(error.reason, f"event {sequence} names it: {error}", sequence)


def _lies_in(folder: Path, reference: Reference) -> bool:
    return place(folder, reference.digest).is_file()


def _read(connection: Connection, account: Account) -> None:
    if schema.check_version(connection) == 0:
        return  # nothing was ever written
    for name in schema.missing_guards(connection):
        account.found(Finding("guard_missing", f"the trigger {name} is not as it was made"))
    for row in connection.execution_options(yield_per=500).exec_driver_sql(_ROWS):
        account.add(_line(tuple(row), account))
    said = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    if said != "ok":
        at = account.last.sequence + 1 if account.last else 1
        account.found(Finding("damaged_database", f"the database is damaged: {said}", at))


def _line(row: tuple[Any, ...], account: Account) -> Line:
    sequence, step, *parts, types = row
    run, kind, at, prev, digest = ((part or b"").decode("utf-8", "surrogateescape") for part in parts[:-1])
    line = Line(sequence, run, step, kind, at, parts[-1] or b"", prev, digest)
    if types != _TYPES or any("\udc80" <= letter <= "\udcff" for letter in run + kind + at + prev + digest):
        account.found(Finding("malformed_event", f"event {sequence} holds what changectl never writes", sequence))
    return line
