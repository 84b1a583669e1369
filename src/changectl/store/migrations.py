"""How the database came to its shape, version by version. A step that is published is never edited; the next is added.

Migrations only add: tables, columns, indices, triggers. An event that is there stays there, byte for byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

_ADDS = re.compile(
    r"\s*(CREATE\s+TABLE\s|CREATE\s+(UNIQUE\s+)?INDEX\s|ALTER\s+TABLE\s+\w+\s+ADD\s+COLUMN\s)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Migration:
    """One step.

    Attributes:
        version: what the database has afterwards; one more than before.
        statements: what is added, in SQL: CREATE TABLE, CREATE INDEX, ALTER TABLE ... ADD COLUMN.
        triggers: the guards that are added, by name.
    """

    version: int
    statements: tuple[str, ...] = ()
    triggers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        """Raises ValueError: a statement does more than add."""
        wrong = [sql for sql in self.statements if not _ADDS.match(sql) or ";" in sql]
        wrong += [sql for name, sql in self.triggers.items() if not sql.startswith(f"CREATE TRIGGER {name} ")]
        if wrong:
            raise ValueError(f"migration {self.version} may only add: {wrong[0].strip()[:80]}")


def guards(migrations: Sequence[Migration], version: int) -> dict[str, str]:
    """The triggers that a database of that version has."""
    return {name: sql for step in migrations if step.version <= version for name, sql in step.triggers.items()}


# A raw connection has recursive_triggers off, and then INSERT OR REPLACE deletes without asking the delete trigger. So
# the insert trigger itself admits nothing but the next line of the chain.
_TRIGGERS_1: Final = {
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
_TABLES_1: Final = (
    """CREATE TABLE event (
  sequence INTEGER NOT NULL, run VARCHAR NOT NULL, step INTEGER NOT NULL, kind VARCHAR NOT NULL, at VARCHAR NOT NULL,
  body BLOB NOT NULL, prev VARCHAR NOT NULL, hash VARCHAR NOT NULL, PRIMARY KEY (sequence), UNIQUE (prev), UNIQUE (hash)
)""",
    "CREATE INDEX ix_event_kind ON event (kind)",
    "CREATE INDEX ix_event_run ON event (run)",
    """CREATE TABLE lock (
  service VARCHAR NOT NULL, run VARCHAR NOT NULL, owner VARCHAR NOT NULL, host VARCHAR NOT NULL,
  machine VARCHAR NOT NULL, boot VARCHAR NOT NULL, pid_space VARCHAR NOT NULL, pid INTEGER NOT NULL,
  start_ticks INTEGER NOT NULL, since VARCHAR NOT NULL, PRIMARY KEY (service)
)""",
    "CREATE TABLE meta (name VARCHAR NOT NULL, value VARCHAR NOT NULL, PRIMARY KEY (name))",
)
MIGRATIONS: Final = (Migration(1, _TABLES_1, MappingProxyType(_TRIGGERS_1)),)
