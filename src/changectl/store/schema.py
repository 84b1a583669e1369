"""The database's shape: tables, the triggers that guard the journal, and the version that old programs respect."""

from __future__ import annotations

import re
from typing import Final

from sqlalchemy import Connection
from sqlmodel import SQLModel

from changectl.core.errors import Refused
from changectl.store import tables

VERSION: Final = 1
APPLICATION_ID: Final = 0x63686374  # "chct": tells our file from somebody else's SQLite database

# A raw connection has recursive_triggers off, and then INSERT OR REPLACE deletes without asking the delete trigger. So
# the insert trigger itself admits nothing but the next line of the chain.
TRIGGERS: Final = {
    "event_only_appends": """CREATE TRIGGER event_only_appends BEFORE INSERT ON event
WHEN NEW.sequence IS NOT (SELECT COALESCE(MAX(sequence), 0) + 1 FROM event)
  OR NEW.prev IS NOT COALESCE((SELECT hash FROM event ORDER BY sequence DESC LIMIT 1), printf('%064d', 0))
BEGIN SELECT RAISE(ABORT, 'the journal only grows at its end'); END""",
    "event_keeps_hashes_apart": """CREATE TRIGGER event_keeps_hashes_apart BEFORE INSERT ON event
WHEN EXISTS (SELECT 1 FROM event WHERE hash = NEW.hash OR prev = NEW.prev)
BEGIN SELECT RAISE(ABORT, 'the journal already holds this event'); END""",
    "event_never_changes": """CREATE TRIGGER event_never_changes BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'the journal is never rewritten'); END""",
    "event_never_goes": """CREATE TRIGGER event_never_goes BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'the journal is never rewritten'); END""",
}


def migrate(connection: Connection) -> None:
    """Bring an empty or older database to `VERSION`; call it inside BEGIN IMMEDIATE, so that one process does it.

    Migrations only add: an event that is there stays there, byte for byte.

    Raises:
        Refused: the database is not ours or was written by a newer program.
    """
    version = check_version(connection)
    if version == VERSION:
        return
    # The tables are named one by one: SQLModel's registry is shared with whatever else a process has imported.
    ours = [SQLModel.metadata.tables[model.__name__.lower()] for model in (tables.Event, tables.Lock, tables.Meta)]
    SQLModel.metadata.create_all(connection, tables=ours)
    for statement in TRIGGERS.values():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {VERSION}")


def check_version(connection: Connection) -> int:
    """The schema's version, 0 for an empty database. Raises Refused when it is not ours or newer than this program."""
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    application = int(connection.exec_driver_sql("PRAGMA application_id").scalar_one())
    if application == APPLICATION_ID:
        if version > VERSION:
            message = (
                f"a newer changectl wrote this database (version {version}; known here: up to {VERSION}). "
                "Install that one; nothing was read or changed."
            )
            raise Refused(message, reason="database_newer")
        return version
    objects = int(connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one())
    if objects or version:
        raise Refused("the file is a database, but not one of changectl's", reason="not_our_database")
    return 0


def missing_guards(connection: Connection) -> list[str]:
    """The triggers that are not there as they were made: each a sign of tampering."""
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    found = {str(name): _normal(str(sql)) for name, sql in rows}
    changed = [name for name, sql in TRIGGERS.items() if found.get(name) != _normal(sql)]
    strange = [name for name in found if name not in TRIGGERS]
    return changed + strange


def assert_guards(connection: Connection) -> None:
    """Refuse a database whose journal could be rewritten unnoticed. Raises Refused."""
    gone = missing_guards(connection)
    if gone:
        message = f"the journal's guards are not as they were made ({', '.join(gone)}): somebody changed the database"
        raise Refused(message, reason="guards_missing")


def _normal(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()
