"""Looks for secrets where they must not be: process lists and temporary files while things run, all files after it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

from changectl.core.redaction.redactor import Tripwire

EVERY = 0.05  # seconds


class Watch:
    """Samples, while it is open, every command line of this machine and every file below one temporary folder.

    The hosts of the lab are containers of this machine, so that its process list holds theirs.
    """

    def __init__(self, secrets: Sequence[str], temporary: Path) -> None:
        self._temporary = temporary
        self._tripwire = Tripwire(secrets)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.found: set[str] = set()
        self.samples = 0
        self.longest_gap = 0.0
        self.names: set[str] = set()  # programs that were seen, so that a test can tell that it looked

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join(timeout=10)

    def _sample(self) -> None:
        known: dict[str, bytes] = {}
        last = time.monotonic()
        while not self._end.is_set():
            for pid, words in _command_lines():
                if known.get(pid) != words:
                    known[pid] = words
                    self._look(f"the command line of process {pid}", words)
                    self.names |= {Path(word).name for word in words.decode(errors="replace").split("\0")[:2]}
            for path in _small_files(self._temporary):
                with contextlib.suppress(OSError):
                    self._look(str(path), path.read_bytes())
            self.samples += 1
            now = time.monotonic()
            self.longest_gap, last = max(self.longest_gap, now - last), now
            self._end.wait(EVERY)

    def _look(self, place: str, data: bytes) -> None:
        if self._tripwire.finds(data):
            self.found.add(f"{place}: {data[:300]!r}")


def _command_lines() -> Iterator[tuple[str, bytes]]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                yield entry.name, (entry / "cmdline").read_bytes()


def _small_files(folder: Path) -> Iterator[Path]:
    with contextlib.suppress(OSError):  # what was there a moment ago may be gone
        for path in folder.rglob("*"):
            # What an operator's own check reads on a host lies in the check's private folder while it runs.
            if "changectl-checks-" not in str(path) and path.is_file() and path.stat().st_size < 1 << 20:
                yield path


def places(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder, as it is and unpacked, and every value of every table of the databases."""
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        yield str(path), data
        with contextlib.suppress(zlib.error):
            yield f"{path} (unpacked)", zlib.decompress(data)
        if data.startswith(b"SQLite format 3"):
            yield from _rows(path)


def _rows(path: Path) -> Iterator[tuple[str, bytes]]:
    with contextlib.closing(sqlite3.connect(path)) as database:
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for row in database.execute(f'SELECT * FROM "{table}"'):
                for value in row:
                    data = value if isinstance(value, bytes) else str(value).encode()
                    yield f"{path}, a row of {table}", data
                    with contextlib.suppress(zlib.error):
                        yield f"{path}, a row of {table} (unpacked)", zlib.decompress(data)
