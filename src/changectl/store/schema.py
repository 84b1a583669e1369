"""The database's shape: brought to the newest version, guarded by triggers, marked so that old programs keep off."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection

from changectl.core.errors import Refused
from changectl.store.migrations import MIGRATIONS, Migration, guards

VERSION: Final = MIGRATIONS[-1].version
TRIGGERS: Final = guards(MIGRATIONS, VERSION)
APPLICATION_ID: Final = 0x63686374  # "chct": tells our file from somebody else's SQLite database


def migrate(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring an empty or older database to the newest version, inside BEGIN IMMEDIATE: one process does it, or none.

    Raises:
        Refused: the database is not ours, was written by a newer program, or its guards are gone.
    """
    version = check_version(connection, migrations)
    if version:
        assert_guards(connection, migrations)  # a journal that was tampered with is not carried over as a sound one
    for step in migrations:
        if step.version > version:
            for statement in (*step.statements, *step.triggers.values()):
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(f"PRAGMA user_version = {step.version:d}")
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    assert_guards(connection, migrations)


def check_version(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """The schema's version, 0 for an empty database. Raises Refused when it is not ours or newer than this program."""
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    application = int(connection.exec_driver_sql("PRAGMA application_id").scalar_one())
    newest = migrations[-1].version
    if application == APPLICATION_ID:
        if version > newest:
            message = (
                f"a newer changectl wrote this database (version {version}; known here: up to {newest}). "
                "Install that one; nothing was read or changed."
            )
            raise Refused(message, reason="database_newer")
        return version
    objects = int(connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one())
    if objects or version:
        raise Refused("the file is a database, but not one of changectl's", reason="not_our_database")
    return 0


def missing_guards(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> list[str]:
    """The triggers that are not there as they were made: each a sign of tampering."""
    version = int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())
    made = guards(migrations, version)
    rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    found = {str(name): _normal(str(sql)) for name, sql in rows}
    changed = [name for name, sql in made.items() if found.get(name) != _normal(sql)]
    strange = [name for name in found if name not in made]
    return changed + strange


def assert_guards(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Refuse a database whose journal could be rewritten unnoticed. Raises Refused."""
    gone = missing_guards(connection, migrations)
    if gone:
        message = f"the journal's guards are not as they were made ({', '.join(gone)}): somebody changed the database"
        raise Refused(message, reason="guards_missing")


def _normal(sql: str) -> str:
    return re.sub(r"\s+", " ", sql).strip()
