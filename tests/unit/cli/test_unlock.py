"""`changectl unlock`: for the day when a holder is gone and nobody can see it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jsonschema
import pytest
from sqlalchemy import update
from tests.unit.cli.cli_runner import Run
from tests.unit.core.history.history_samples import Tape

from changectl.store import open_store, tables
from changectl.store.store import Store

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/reference/records.schema.json").read_text())
REASON = "the job's container was killed"


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with open_store(project / ".changectl" / "changectl.db", project / ".changectl" / "key") as opened:
        tape = Tape()
        tape.opened("20261201-dd")
        for event in tape.events:
            opened.journal.append(event.run, event.kind, event.body, step=event.step)
        yield opened


def hold_elsewhere(store: Store, run: str = "20261201-dd") -> None:
    """As a container leaves it that was killed."""
    store.locks.acquire("chat", run, "ci@runner-7")
    with store._database.writing() as connection:
        connection.execute(
            update(tables.Lock).values(host="runner-7", machine="", pid_space="pid:[1]", boot="x", pid=1)
        )


def test_the_lock_of_a_holder_that_nobody_sees_is_broken_and_recorded(store: Store, run: Run) -> None:
    hold_elsewhere(store)

    ended = run("unlock", "chat", "--reason", REASON)

    assert ended.code == 0
    for part in ("ci@runner-7", "runner-7", "changectl recover 20261201-dd"):
        assert part in ended.out
    assert store.locks.held() == []
    (event,) = store.journal.select(kinds=("lock.broken",))
    assert (event.run, event.body["reason"], event.body["owner"]) == ("20261201-dd", REASON, "ci@runner-7")
    assert event.body["holder"]["host"] == "runner-7"
    assert event.body["actor"]
    assert REASON in run("show", "20261201-dd").out
    with store.records.lock("chat", "20261201-ee", "bob") as taken_from:
        assert taken_from is None


def test_a_secret_that_somebody_types_as_the_reason_is_not_recorded(store: Store, run: Run) -> None:
    hold_elsewhere(store)
    assert run("unlock", "chat", "--reason", "its runner is gone, password=correct-horse-battery").code == 0
    (event,) = store.journal.select(kinds=("lock.broken",))

    assert event.body["reason"].startswith("its runner is gone, password=")
    assert "correct-horse-battery" not in event.body["reason"]


def test_the_document_fits_its_schema_and_a_second_time_nobody_holds_it(store: Store, run: Run) -> None:
    hold_elsewhere(store)
    which = {"$ref": "#/$defs/unlock", "$defs": SCHEMA["$defs"], "$schema": SCHEMA["$schema"]}

    first = run("unlock", "chat", "--reason", REASON, "--json").json
    again = run("unlock", "chat", "--reason", REASON, "--json")

    jsonschema.validate(first, which, cls=jsonschema.Draft202012Validator)
    jsonschema.validate(again.json, which, cls=jsonschema.Draft202012Validator)
    assert (first["broken"]["run"], again.json["broken"], again.code) == ("20261201-dd", None, 0)
    assert len(store.journal.select(kinds=("lock.broken",))) == 1


def test_while_its_holder_lives_on_this_machine_a_lock_is_not_broken(store: Store, run: Run) -> None:
    with store.records.lock("chat", "20261201-dd", "ann@desk"):
        ended = run("unlock", "chat", "--reason", REASON)

        assert ended.code == 3
        assert "ann@desk" in ended.err
        assert [held.run for held, _ in store.locks.held()] == ["20261201-dd"]
    assert store.journal.select(kinds=("lock.broken",)) == []


def test_a_lock_of_a_run_that_never_got_to_its_beginning_is_broken_too(store: Store, run: Run) -> None:
    hold_elsewhere(store, "20261202-ff")

    assert run("unlock", "chat", "--reason", REASON).code == 0
    assert run("status").code == run("history").code == run("show", "20261202-ff").code == 0


@pytest.mark.parametrize(
    "arguments", [["chat"], ["chat", "--reason", " "], ["chta", "--reason", "x"], ["--reason", "x"]]
)
@pytest.mark.usefixtures("store")
def test_without_a_reason_or_with_a_service_that_nobody_changed_it_is_not_done(arguments: list[str], run: Run) -> None:
    assert run("unlock", *arguments).code == 2


def test_before_the_first_change_nothing_is_created(project: Path, run: Run) -> None:
    assert run("unlock", "chat", "--reason", REASON).code == 2
    assert not (project / ".changectl").exists()
