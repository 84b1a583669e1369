"""Run by itself: does what a run does to the record, once for each place where it is killed; argument: the folder.

The place is the n-th instruction of SQLite's machine, or the n-th time that Python opens, links, renames or removes a
file. Every life is a fork, so that none has to load everything anew.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Engine

from changectl.store import open_store

FILE_EVENTS = ("open", "os.link", "os.rename", "os.remove", "os.mkdir")
# Of about 4000 instructions and 60 file operations; close to each other where the database is made.
INSTRUCTIONS = (*range(1, 400, 37), *range(400, 1600, 120), *range(1600, 6000, 275))
OPERATIONS = range(1, 64, 3)


def live(path: Path, told: int) -> None:
    """What a run does; whatever is done is told as one byte."""
    with open_store(path) as store:
        for number in range(6):
            store.journal.append("r1", "write.intent", {"number": number})
            blob = store.records.put_blob(f"evidence {number}".encode())
            copy = store.records.put_snapshot("r1", "gpu1", f"saved {number}".encode())
            with store.records.lock("chat", "r1", "ann"):
                store.journal.append("r1", "write.outcome", {"number": number, "blob": blob, "copy": copy})
            os.write(told, b".")


class Fate:
    """Kills this process when it has counted to the end."""

    def __init__(self, left: int) -> None:
        self.left = left

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def by_instruction(count: int) -> None:
    fate = Fate(count)

    @event.listens_for(Engine, "connect")
    def _watch(connection: sqlite3.Connection, _record: Any) -> None:
        connection.set_progress_handler(fate.step, 1)


def by_file_operation(count: int) -> None:
    fate, own = Fate(count), threading.get_ident()

    def hook(name: str, _arguments: Any) -> None:
        if name in FILE_EVENTS and threading.get_ident() == own:
            fate.step()

    sys.addaudithook(hook)


def main(folder: Path) -> None:
    """One life for each place; what was told lies beside each record."""
    (folder / "warm").mkdir()
    live(folder / "warm" / "changectl.db", os.open(os.devnull, os.O_WRONLY))
    places = [("sql", by_instruction, count) for count in INSTRUCTIONS]
    places += [("file", by_file_operation, count) for count in OPERATIONS]
    for name, arm, count in places:
        here = folder / f"{name}-{count}"
        here.mkdir()
        told = os.open(here / "told", os.O_CREAT | os.O_WRONLY)
        child = os.fork()
        if child == 0:
            arm(count)
            live(here / "changectl.db", told)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        (here / "ended").write_text(str(os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
