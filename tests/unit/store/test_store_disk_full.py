"""A real file system without room: what cannot be stored is refused in one sentence, and nothing is half there."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.unit.store.test_store_migrations import VERSION_1, backups, opened, version

from changectl.core.audit.witness import Witnesses
from changectl.core.errors import ChangectlError
from changectl.store import open_store
from changectl.store.auditing import audit

BIG = {"log": "x" * 100_000}


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system here")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Take all the room there is."""
    with (folder / "filler").open("ab", buffering=0) as file:
        while True:
            try:
                file.write(b"x" * 4096)
            except OSError:
                return


def make_room(folder: Path) -> None:
    (folder / "filler").unlink()


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(ChangectlError) as caught:
        action()
    assert caught.value.reason == "record_failed"
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_an_event_that_does_not_fit_is_refused_whole_and_the_record_can_be_read_and_continued(small: Path) -> None:
    path = small / "changectl.db"
    with open_store(path) as store:
        store.journal.append("r1", "run.opened", {})
        fill(small)

        text = refused(lambda: [store.journal.append("r1", "write.intent", BIG) for _ in range(20)])

        assert "full" in text
        assert f"make room on the file system of {small}" in text
        kept = store.journal.events("r1")
        assert {event.kind for event in kept[1:]} <= {"write.intent"}
        assert store.verify_chain() == []
        make_room(small)
        store.journal.append("r1", "goes on", {})
        assert [event.kind for event in store.journal.events("r1")] == [*(event.kind for event in kept), "goes on"]

    assert audit(path, small / "changectl.key", Witnesses()).findings == ()


def test_what_was_stored_before_the_disk_was_full_outlives_closing_on_it(small: Path) -> None:
    path = small / "changectl.db"
    with open_store(path) as store:
        events = [store.journal.append("r1", "note", {"log": "x" * 10_000}) for _ in range(20)]
        fill(small)

    make_room(small)
    with open_store(path) as store:
        assert store.journal.events("r1") == events
        assert store.verify_chain() == []


def test_evidence_and_saved_configuration_are_kept_whole_or_not_at_all(small: Path) -> None:
    with open_store(small / "changectl.db") as store:
        store.records.put_snapshot("r1", "h1", b"the key is made with the first")
        fill(small)
        data = os.urandom(300_000)

        refused(lambda: store.records.put_blob(data))
        refused(lambda: store.records.put_snapshot("r1", "h1", data))

        assert [path for path in small.rglob("*") if path.name.startswith(".")] == []
        make_room(small)
        for digest, get in (
            (store.records.put_blob(data), store.records.get_blob),
            (store.records.put_snapshot("r1", "h1", data), store.records.get_snapshot),
        ):
            assert get(digest) == data


def test_a_key_that_does_not_fit_is_made_when_there_is_room(small: Path) -> None:
    with open_store(small / "changectl.db") as store:
        fill(small)
        refused(lambda: store.records.put_snapshot("r1", "h1", b"saved"))
        assert not (small / "changectl.key").exists()
        make_room(small)
        assert store.records.get_snapshot(store.records.put_snapshot("r1", "h1", b"saved")) == b"saved"


def test_a_record_that_could_not_be_begun_can_be_begun_later(small: Path) -> None:
    fill(small)
    refused(lambda: open_store(small / "new" / "changectl.db"))
    make_room(small)
    with open_store(small / "new" / "changectl.db") as store:
        store.journal.append("r1", "note", {})
        assert store.verify_chain() == []


def test_without_room_for_the_backup_nothing_is_migrated(small: Path) -> None:
    path = small / "changectl.db"
    shutil.copy(VERSION_1, path)
    open_store(path).close()
    fill(small)
    (small / "filler").open("r+b").truncate((small / "filler").stat().st_size - 60_000)  # the log fits, no backup does

    text = refused(lambda: opened(path))

    assert "backup" in text
    assert (version(path), backups(path)) == (1, [])
    assert not list(small.glob(".*"))
    make_room(small)
    opened(path).close()
    assert (version(path), len(backups(path))) == (2, 1)
