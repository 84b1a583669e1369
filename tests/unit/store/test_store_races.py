"""Several processes at one record: one lock has one holder, and a writer that takes its time is waited for."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.contract.imports import SOURCE

from changectl.core.errors import ChangectlError
from changectl.store import BUSY_SECONDS, open_store, tables
from changectl.store.store import Store

RACES = 200
NAMES = ("r1", "r2")
HELD = 10.0  # seconds

HOLD = """
import sqlite3, sys, time
raw = sqlite3.connect(sys.argv[1], isolation_level=None)
raw.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
raw.execute("COMMIT")
"""


class Racer:
    """A process that takes locks when it is told to."""

    def __init__(self, database: Path, name: str) -> None:
        command = [sys.executable, "-m", "tests.unit.store.racer", str(database), name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=SOURCE.parent)

    def order(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def racers(store: Store, database: Path) -> Iterator[tuple[Racer, ...]]:
    started = tuple(Racer(database, name) for name in NAMES)
    yield started
    for racer in started:
        with contextlib.suppress(BrokenPipeError):
            racer.process.communicate("")
    assert [racer.process.returncode for racer in started] == [0, 0]


def race(racers: tuple[Racer, ...], service: str) -> tuple[str, str]:
    """Both try at the same moment; the name of the winner, and what he said. The other one lost to him."""
    moment = time.monotonic() + 0.003
    for racer in racers:
        racer.order(f"{service} {moment}")
    answers = dict(zip(NAMES, [racer.answer() for racer in racers], strict=True))
    winners = [name for name, answer in answers.items() if answer.startswith("won")]
    assert len(winners) == 1, answers
    (loser,) = set(NAMES) - set(winners)
    assert f"run {winners[0]} of {winners[0]}@host" in answers[loser]
    return winners[0], answers[winners[0]]


def test_of_two_processes_exactly_one_gets_the_lock_whenever_they_meet(store: Store, racers: tuple[Racer, ...]) -> None:
    for racer in racers:
        racer.order("release nothing")
        assert racer.answer() == "not mine"
    won: Counter[str] = Counter()
    for number in range(RACES):
        winner, said = race(racers, "chat")
        won[winner] += 1
        dead = number % 10 == 9  # now and then the holder is a process that is gone: it too has one heir
        if dead:
            with store._database.writing() as connection:
                connection.execute(update(tables.Lock).values(pid=2**22 + 1, start_ticks=1, run="gone"))
            heir, said = race(racers, "chat")
            assert said == "won gone"
            winner = heir
        else:
            assert said == "won -"
        assert [held.run for held, _ in store.locks.held()] == [winner]
        racers[NAMES.index(winner)].order("release chat")
        assert racers[NAMES.index(winner)].answer() == "released"

    assert sum(won.values()) == RACES
    assert min(won[name] for name in NAMES) > 3  # it was a race, not a queue
    assert store.locks.held() == []


@contextlib.contextmanager
def writing(database: Path, seconds: float) -> Iterator[float]:
    """Another process that keeps the database locked for writing; since when."""
    command = [sys.executable, "-c", HOLD, str(database), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield time.monotonic()
        process.kill()


def test_an_append_waits_for_a_writer_that_needs_ten_seconds(database: Path) -> None:
    with open_store(database) as store, writing(database, HELD) as since:
        assert BUSY_SECONDS > HELD + 2
        store.journal.append("r1", "write.intent", {})
        waited = time.monotonic() - since

        assert HELD - 1 < waited < BUSY_SECONDS
        assert [event.kind for event in store.journal.events("r1")] == ["write.intent"]
        assert store.verify_chain() == []


def test_for_a_writer_that_needs_longer_nobody_waits_and_what_is_stored_can_be_read_meanwhile(
    store: Store, database: Path
) -> None:
    store.journal.append("r1", "run.opened", {})
    with writing(database, 60) as since:
        for action in (
            lambda: store.journal.append("r1", "write.intent", {}),
            lambda: store.locks.acquire("chat", "r1", "ann"),
        ):
            with pytest.raises(ChangectlError, match=r"database is locked; nothing was recorded .*fuser") as caught:
                action()
            assert caught.value.reason == "record_failed"
        assert time.monotonic() - since < BUSY_SECONDS  # the bound is the one that was asked for
        assert [event.kind for event in store.journal.events("r1")] == ["run.opened"]
        with open_store(database, busy_seconds=0.3) as second:  # a command that only reads is not in the way
            assert second.journal.runs() == ["r1"]
    store.journal.append("r1", "goes on", {})
    assert store.locks.held() == []
    assert store.verify_chain() == []
