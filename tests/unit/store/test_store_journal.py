from __future__ import annotations

import sqlite3
from datetime import datetime
from pathlib import Path

import pytest

from changectl.core.audit.chain import GENESIS
from changectl.core.errors import ChangectlError
from changectl.core.redaction.redactor import Tripwire
from changectl.store import open_store
from changectl.store.store import Store


def test_an_appended_event_is_read_back_as_it_was_returned(store: Store) -> None:
    written = store.journal.append("r1", "run.opened", {"plan": "a.yml", "hosts": ["h1"], "share": 0.5}, step=2)

    assert store.journal.events("r1") == [written]
    assert written.sequence == 1
    assert written.step == 2
    assert written.body == {"plan": "a.yml", "hosts": ["h1"], "share": 0.5}


def test_time_is_utc_with_microseconds(store: Store) -> None:
    at = datetime.fromisoformat(store.journal.append("r1", "note", {}).at)

    assert at.utcoffset() is not None
    assert at.utcoffset().total_seconds() == 0
    assert "." in store.journal.append("r1", "note", {}).at


def test_another_process_sees_the_events_and_continues_the_chain(store: Store, database: Path) -> None:
    store.journal.append("r1", "one", {})
    with open_store(database) as second:
        second.journal.append("r2", "two", {})

    assert [event.kind for event in store.journal.select()] == ["one", "two"]
    assert store.journal.runs() == ["r1", "r2"]
    assert store.verify_chain() == []


def test_events_of_chosen_runs_and_kinds_only(store: Store) -> None:
    for run in ("r1", "r2"):
        for kind in ("run.opened", "edit"):
            store.journal.append(run, kind, {})

    assert [(event.run, event.kind) for event in store.journal.select(kinds=("edit",), runs=("r2",))] == [
        ("r2", "edit")
    ]
    assert store.journal.events("unknown") == []


def test_the_head_is_the_last_event(store: Store) -> None:
    assert store.journal.head() == (0, GENESIS)
    event = store.journal.append("r1", "note", {})
    assert store.journal.head() == (1, event.hash)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", object()])
def test_what_json_cannot_say_is_not_recorded(store: Store, value: object) -> None:
    with pytest.raises(ChangectlError) as caught:
        store.journal.append("r1", "note", {"value": value})

    assert caught.value.reason == "record_failed"
    assert store.journal.select() == []


def test_strange_text_survives(store: Store) -> None:
    body = {"log": "\x1b[31m\u202e \ud800 \U0001f600 \x00"}
    assert store.journal.append("r1", "note", body).body == body
    assert store.journal.events("r1")[0].body == body


def test_a_locked_database_refuses_the_append_with_one_kind_of_error(store: Store, database: Path) -> None:
    blocker = sqlite3.connect(database, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    try:
        with pytest.raises(ChangectlError) as caught:
            store.journal.append("r1", "write.intent", {})
        assert (caught.value.reason, caught.value.exit_code) == ("record_failed", 1)
        assert store.journal.select() == []
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    store.journal.append("r1", "write.intent", {})
    assert store.verify_chain() == []


def test_a_full_disk_refuses_the_append_and_leaves_what_was_there(store: Store) -> None:
    store.journal.append("r1", "one", {})
    with store._database.reading() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(ChangectlError) as caught:
        store.journal.append("r1", "big", {"log": "x" * 1_000_000})

    assert caught.value.reason == "record_failed"
    assert "full" in str(caught.value)
    assert store.journal.events("r1")[0].kind == "one"
    assert store.verify_chain() == []


def test_an_event_with_a_known_secret_is_refused_and_the_secret_not_named(store: Store) -> None:
    store.guard(Tripwire({"correct horse"}))
    with pytest.raises(ChangectlError) as caught:
        store.journal.append("r1", "edit", {"diff": "+ token: correct horse"})

    assert caught.value.reason == "secret_in_record"
    assert "edit" in str(caught.value)
    assert "horse" not in str(caught.value)
    assert store.journal.select() == []


@pytest.mark.parametrize("what", ["deleted", "replaced"])
def test_nothing_is_recorded_into_a_file_that_is_not_there_any_more(store: Store, database: Path, what: str) -> None:
    store.journal.append("R1", "run.opened", {})
    database.unlink()
    if what == "replaced":
        database.write_bytes(b"")
    with pytest.raises(ChangectlError, match="deleted or replaced"):
        store.journal.append("R1", "write.intent", {})
