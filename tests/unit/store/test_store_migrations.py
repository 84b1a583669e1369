"""From one version of the database to the next: a real file of version 1, and a next version that only tests have."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
from tests.contract.imports import SOURCE

from changectl.core.errors import ChangectlError, Refused
from changectl.store import open_store, schema, tables
from changectl.store.migrations import MIGRATIONS, Migration
from changectl.store.store import Store

VERSION_1 = Path(__file__).parent / "data" / "version-1.db"  # written by changectl 0.1.0
RUN = "20261130-081502-chat-k3f7"
GUARD = "CREATE TRIGGER approval_never_goes BEFORE DELETE ON approval BEGIN SELECT RAISE(ABORT, 'never'); END"
NEXT = Migration(
    MIGRATIONS[-1].version + 1,
    ("CREATE TABLE approval (run VARCHAR NOT NULL)", "ALTER TABLE lock ADD COLUMN purpose VARCHAR"),
    MappingProxyType({"approval_never_goes": GUARD}),
)
NEWER = (*MIGRATIONS, NEXT)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A database of version 1 with one run and one lock."""
    path = tmp_path / "state" / "changectl.db"
    path.parent.mkdir()
    shutil.copy(VERSION_1, path)
    path.chmod(0o600)
    return path


def opened(path: Path, migrations: tuple[Migration, ...] = NEWER) -> Store:
    return Store.open(path, path.parent / "changectl.key", busy_seconds=5, migrations=migrations)


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    raw = sqlite3.connect(path)
    try:
        return raw.execute(query).fetchall()
    finally:
        raw.close()


def shape(path: Path) -> set[tuple[object, ...]]:
    """Every table with its columns, and every trigger."""
    columns = "SELECT m.name, c.name, c.type, c.'notnull', c.pk FROM sqlite_master m, pragma_table_info(m.name) c"
    return {*rows(path, columns), *rows(path, "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")}


def version(path: Path) -> object:
    return rows(path, "PRAGMA user_version")[0][0]


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.version-*"))


EVENTS = "SELECT * FROM event ORDER BY sequence"


def test_a_database_of_version_1_is_read_and_continued(old: Path) -> None:
    with open_store(old) as store:
        assert [event.kind for event in store.journal.events(RUN)][:1] == ["run.opened"]
        assert [held.service for held, _ in store.locks.held()] == ["chat"]
        store.journal.append(RUN, "note", {})
        assert store.verify_chain() == []


def test_the_next_version_comes_with_a_backup_and_leaves_every_event_as_it_was(old: Path) -> None:
    before, locks = rows(old, EVENTS), rows(old, "SELECT * FROM lock")

    with opened(old) as store:
        store.journal.append("r2", "note", {})
        assert store.journal.runs() == [RUN, "r2"]

    assert version(old) == NEXT.version
    assert rows(old, EVENTS)[: len(before)] == before
    assert rows(old, "SELECT * FROM lock") == [(*lock, None) for lock in locks]
    raw = sqlite3.connect(old)
    raw.execute("INSERT INTO approval VALUES ('r2')")
    with pytest.raises(sqlite3.IntegrityError, match="never"):
        raw.execute("DELETE FROM approval")
    raw.close()
    (backup,) = backups(old)
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert (version(backup), rows(backup, EVENTS)) == (NEXT.version - 1, before)
    assert not list(old.parent.glob(".*"))


def test_the_backup_is_what_the_older_program_can_go_on_with(old: Path) -> None:
    opened(old).close()
    with pytest.raises(Refused, match="Install that one") as caught:
        open_store(old)
    assert caught.value.reason == "database_newer"

    (backup,) = backups(old)
    shutil.copy(backup, old)

    with open_store(old) as store:
        store.journal.append(RUN, "note", {})
        assert store.verify_chain() == []


def test_a_second_time_there_is_nothing_to_migrate_and_no_backup(old: Path) -> None:
    opened(old).close()
    opened(old).close()

    assert len(backups(old)) == 1


def test_what_is_not_saved_into_the_file_yet_is_in_the_backup_too(old: Path) -> None:
    with open_store(old) as store:
        store.journal.append(RUN, "only in the log", {})
        opened(old).close()  # while the older program has it open
        store.journal.append(RUN, "by the older program", {})

    (backup,) = backups(old)
    assert rows(backup, EVENTS)[-1][3] == "only in the log"
    with opened(old) as newer:
        assert newer.journal.select()[-1].kind == "by the older program"


def test_a_new_database_has_the_same_shape_as_a_migrated_one_and_no_backup(old: Path, tmp_path: Path) -> None:
    fresh = tmp_path / "fresh" / "changectl.db"
    opened(fresh).close()
    opened(old).close()

    assert shape(fresh) == shape(old)
    assert backups(fresh) == []


def test_the_shape_is_the_one_that_the_program_works_with(tmp_path: Path) -> None:
    path = tmp_path / "changectl.db"
    open_store(path).close()

    for model in (tables.Event, tables.Lock, tables.Meta):
        table = model.__table__  # type: ignore[attr-defined]
        found = rows(path, f"SELECT name, type, \"notnull\", pk FROM pragma_table_info('{table.name}')")
        assert found == [(c.name, str(c.type), int(not c.nullable), int(c.primary_key)) for c in table.columns]


def test_a_journal_without_its_guards_is_not_carried_over(old: Path) -> None:
    raw = sqlite3.connect(old, isolation_level=None)
    raw.execute("DROP TRIGGER event_never_goes")
    raw.close()

    with pytest.raises(Refused) as caught:
        opened(old)

    assert caught.value.reason == "guards_missing"
    assert version(old) == 1


def test_a_step_that_fails_half_way_leaves_the_old_version_whole(old: Path) -> None:
    before = shape(old)
    fails = Migration(2, ("CREATE TABLE approval (run VARCHAR)", "CREATE TABLE event (run VARCHAR)"))

    with pytest.raises(ChangectlError, match="already exists") as caught:
        opened(old, (*MIGRATIONS, fails))

    assert caught.value.reason == "record_failed"
    assert (shape(old), version(old)) == (before, 1)
    with open_store(old) as store:
        assert store.verify_chain() == []


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE event", "UPDATE event SET run = ''", "ALTER TABLE event RENAME TO x", "DELETE FROM event",
     "CREATE TABLE x (a); DROP TABLE event", "ALTER TABLE event DROP COLUMN at", "PRAGMA writable_schema = 1"],
)  # fmt: skip
def test_a_step_can_only_add(statement: str) -> None:
    with pytest.raises(ValueError, match="may only add"):
        Migration(2, (statement,))
    with pytest.raises(ValueError, match="may only add"):
        Migration(2, triggers={"x": statement})


def test_versions_follow_each_other() -> None:
    assert [step.version for step in MIGRATIONS] == list(range(1, schema.VERSION + 1))


TOGETHER = """
import sys
from pathlib import Path
from tests.unit.store.test_store_migrations import opened
sys.stdin.readline()
opened(Path(sys.argv[1])).close()
"""


def test_of_several_programs_that_start_at_the_same_time_one_migrates(old: Path) -> None:
    command = [sys.executable, "-c", TOGETHER, str(old)]
    processes = [subprocess.Popen(command, stdin=subprocess.PIPE, cwd=SOURCE.parent) for _ in range(3)]
    for process in processes:
        process.communicate(b"go\n")

    assert [process.returncode for process in processes] == [0, 0, 0]
    assert version(old) == NEXT.version
    assert len(backups(old)) == 1
