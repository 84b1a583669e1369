"""Run by itself: takes a service's lock at the given moments; arguments: the database, the name of this racer.

A line `SERVICE MOMENT` on stdin is one race, at that moment of the monotonic clock; `release SERVICE` gives it back.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from changectl.core.errors import Locked
from changectl.store import open_store


def main(path: Path, name: str) -> None:
    """One line of answer for each line of order."""
    with open_store(path) as store:
        for line in sys.stdin:
            first, second = line.split()
            if first == "release":
                answer = "released" if store.locks.release(second, name) else "not mine"
            else:
                while time.monotonic() < float(second):  # awake at that moment, not some time later
                    pass
                try:
                    dead = store.locks.acquire(first, name, f"{name}@host")
                    answer = f"won {dead.run if dead else '-'}"
                except Locked as error:
                    answer = f"lost {error}"
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
