"""Killed anywhere, the record loses nothing that was stored, tells nothing that is not so, and can be continued."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contract.imports import SOURCE
from tests.unit.store import killing

from changectl.core.audit.witness import Witnesses
from changectl.store import open_store
from changectl.store.auditing import audit

KILLED = -9
PLACES = [f"sql-{count}" for count in killing.INSTRUCTIONS] + [f"file-{count}" for count in killing.OPERATIONS]


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A record of each life."""
    folder = tmp_path_factory.mktemp("lives")
    subprocess.run([sys.executable, "-m", "tests.unit.store.killing", str(folder)], check=True, cwd=SOURCE.parent)
    return folder


def test_most_lives_were_cut_off_and_some_at_every_stage(lives: Path) -> None:
    ends = {place: int((lives / place / "ended").read_text()) for place in PLACES}
    stages = {(lives / place / "told").stat().st_size for place in PLACES if ends[place] == KILLED}

    assert set(ends.values()) <= {KILLED, 0}
    assert list(ends.values()).count(KILLED) > len(PLACES) * 0.8
    assert stages >= {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize("place", PLACES)
def test_killed_anywhere_the_record_is_sound_and_goes_on(lives: Path, place: str) -> None:
    path, told = lives / place / "changectl.db", (lives / place / "told").stat().st_size
    with open_store(path) as store:
        events = store.journal.events("r1")
        assert [event.body["number"] for event in events] == [number // 2 for number in range(len(events))]
        assert 2 * told <= len(events) <= 2 * told + 2
        for event in events[1::2]:
            assert store.records.get_blob(event.body["blob"]) == f"evidence {event.body['number']}".encode()
            assert store.records.get_snapshot(event.body["copy"]) == f"saved {event.body['number']}".encode()
        with store.records.lock("chat", "r2", "bob") as dead:  # a lock that was left behind is free at once
            assert dead is None or dead["run"] == "r1"
        store.records.put_snapshot("r2", "gpu1", b"saved again")
        store.journal.append("r2", "goes on", {})

    assert audit(path, path.parent / "changectl.key", Witnesses()).findings == ()


def test_a_log_that_was_cut_off_at_any_byte_holds_the_events_before_it_and_no_half_one(tmp_path: Path) -> None:
    path = tmp_path / "whole" / "changectl.db"
    with open_store(path) as store:
        kept = [store.journal.append("r1", "note", {"number": number, "log": "x" * 3000}) for number in range(8)]
        log = path.with_name("changectl.db-wal").read_bytes()
        file = path.read_bytes()
    counts = []
    for index, end in enumerate([*range(0, len(log), len(log) // 60), len(log)]):
        cut = tmp_path / str(index) / "changectl.db"
        cut.parent.mkdir()
        cut.write_bytes(file)
        cut.with_name("changectl.db-wal").write_bytes(log[:end])
        cut.chmod(0o600)
        with open_store(cut) as store:
            events = store.journal.events("r1")
            assert events == kept[: len(events)]
            assert store.verify_chain() == []
            counts.append(len(events))
        shutil.rmtree(cut.parent)

    assert counts == sorted(counts)
    assert (counts[0], counts[-1]) == (0, len(kept))
