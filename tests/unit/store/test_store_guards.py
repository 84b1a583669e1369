from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from changectl.core.audit.chain import event_hash
from changectl.core.errors import ChangectlError, Refused
from changectl.store import open_store, schema
from changectl.store.store import Store


@pytest.fixture
def raw(store: Store, database: Path) -> sqlite3.Connection:
    """Somebody with an ordinary SQLite shell: none of our settings, two events to play with."""
    store.journal.append("r1", "one", {"n": 1})
    store.journal.append("r1", "two", {"n": 2})
    return sqlite3.connect(database, isolation_level=None)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = x'7b7d' WHERE sequence = 1",
        "UPDATE OR REPLACE event SET sequence = 2 WHERE sequence = 1",
        "DELETE FROM event WHERE sequence = 2",
        "DELETE FROM event",
        "REPLACE INTO event SELECT sequence, run, step, 'x', at, body, prev, hash FROM event WHERE sequence = 2",
        "REPLACE INTO event SELECT sequence, run, step, kind, at, x'7b7d', prev, hash FROM event WHERE sequence = 1",
        "INSERT OR REPLACE INTO event SELECT 3, run, step, kind, at, body, prev, hash FROM event WHERE sequence = 2",
        "INSERT OR IGNORE INTO event VALUES (9, 'r1', 0, 'k', 'now', x'7b7d', 'p', 'h')",
        "INSERT INTO event VALUES (3, 'r1', 0, 'k', 'now', x'7b7d', 'not the head', 'h')",
        "INSERT INTO event SELECT 3, run, step, kind, at, body, hash, hash FROM event WHERE sequence = 2",
        "INSERT INTO event (run, step, kind, at, body, prev, hash) VALUES ('r', 0, 'k', 'now', x'7b7d', 'p', 'h')",
    ],
)
def test_a_plain_sqlite_shell_cannot_rewrite_the_journal(raw: sqlite3.Connection, store: Store, statement: str) -> None:
    before = raw.execute("SELECT * FROM event").fetchall()

    with pytest.raises(sqlite3.IntegrityError, match="journal"):
        raw.execute(statement)

    assert raw.execute("SELECT * FROM event").fetchall() == before
    assert store.verify_chain() == []


def test_an_event_forged_at_the_end_is_found(raw: sqlite3.Connection, store: Store) -> None:
    raw.execute(
        "INSERT INTO event SELECT 3, 'r1', 0, 'forged', 'now', x'7b7d', hash, 'madeup' FROM event WHERE sequence = 2"
    )

    assert [(finding.problem, finding.sequence) for finding in store.verify_chain()] == [("changed_event", 3)]


def test_a_change_behind_dropped_guards_is_found_and_the_database_refused(
    raw: sqlite3.Connection, database: Path
) -> None:
    raw.execute("DROP TRIGGER event_never_changes")
    raw.execute("UPDATE event SET body = x'7b7d' WHERE sequence = 1")

    with pytest.raises(Refused) as caught:
        open_store(database)

    assert caught.value.reason == "guards_missing"
    assert "event_never_changes" in str(caught.value)


def test_dropping_the_guards_of_an_open_record_is_found(raw: sqlite3.Connection, store: Store) -> None:
    raw.execute("DROP TRIGGER event_never_goes")
    raw.execute("DELETE FROM event WHERE sequence = 1")

    assert {finding.problem for finding in store.verify_chain()} == {"missing_event", "broken_link", "guard_missing"}


def test_a_guard_that_was_made_toothless_counts_as_gone(raw: sqlite3.Connection, database: Path) -> None:
    raw.execute("DROP TRIGGER event_never_goes")
    raw.execute("CREATE TRIGGER event_never_goes BEFORE DELETE ON event BEGIN SELECT 1; END")

    with pytest.raises(Refused, match="event_never_goes"):
        open_store(database)


def test_the_insert_guard_stops_our_own_program_too(store: Store) -> None:
    store.journal.append("r1", "one", {})
    body = b"{}"
    forged = event_hash("f" * 64, "r1", 0, "k", "now", body)
    with pytest.raises(ChangectlError, match="only grows at its end"), store._database.writing() as connection:
        connection.exec_driver_sql("INSERT INTO event VALUES (2,'r1',0,'k','now',?,?,?)", (body, "f" * 64, forged))


def test_a_newer_database_is_refused_untouched(store: Store, database: Path) -> None:
    store.close()
    raw = sqlite3.connect(database, isolation_level=None)
    raw.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    raw.close()

    with pytest.raises(Refused) as caught:
        open_store(database)

    assert caught.value.reason == "database_newer"
    assert f"version {schema.VERSION + 1}" in str(caught.value)


def test_somebody_elses_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("CREATE TABLE album (title TEXT)")
    other.close()

    with pytest.raises(Refused) as caught:
        open_store(path)

    assert caught.value.reason == "not_our_database"
    check = sqlite3.connect(path)
    assert check.execute("SELECT name FROM sqlite_master").fetchall() == [("album",)]
    check.close()


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, rather a text of some length\n" * 10)

    with pytest.raises(Refused) as caught:
        open_store(path)

    assert caught.value.reason == "not_our_database"
    assert path.read_text().startswith("not a database")
