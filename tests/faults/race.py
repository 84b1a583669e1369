"""Two controllers with two records ask one host for its lease at the same moment, many times: one of them gets it."""

from __future__ import annotations

import secrets
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from changectl.adapters.doors import HostDoors
from changectl.adapters.shipped import playbooks_folder
from changectl.core.errors import HostCallError
from changectl.core.ports import Door, HostAddress

ROUNDS = 200
CALL_TIMEOUT = 30.0  # seconds
STEP = 0.0002  # seconds
SECONDS = 3.0  # of a lease
HERE = HostAddress("here", {"ansible_connection": "local", "ansible_python_interpreter": sys.executable})


@dataclass
class Controller:
    """One of the two: a door of its own, and in every round a run of its own."""

    name: str
    door: Door
    later: float = 0.0  # seconds after the other; what the winner of a round gets more of, so that both are as fast
    won: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)

    def ask(self, number: int, together: threading.Barrier) -> None:
        """Ask for the lease, at the same moment as the other."""
        order = {"run": f"race-{number}-{self.name}", "generation": 1, "nonce": secrets.token_hex(16)}
        about = {"owner": f"{self.name}@desk", "controller": self.name, "seconds": SECONDS, "state_dir": None}
        together.wait()
        time.sleep(self.later)
        try:
            self.door.call("lease", {**order, **about}, timeout=CALL_TIMEOUT)
            self.won[number] = order
        except HostCallError as error:
            self.lost[number] = error.reason

    def give_back(self, number: int) -> None:
        """End the lease of a round that was won."""
        if number in self.won:
            self.door.call("release", {**self.won[number], "state_dir": None}, timeout=CALL_TIMEOUT)


def race() -> dict[str, Any]:
    """All rounds, told as a cell: `half` when both had the lease at once, `unknown` when a round had no winner."""
    doors = HostDoors(playbooks_folder())
    pair = [Controller(name, doors.open(HERE)) for name in ("first", "second")]
    winners, heard = Counter[int](), Counter[str]()
    together = threading.Barrier(len(pair))
    for number in range(ROUNDS):
        threads = [threading.Thread(target=one.ask, args=(number, together)) for one in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        winners[sum(number in one.won for one in pair)] += 1
        heard.update(one.lost[number] for one in pair if number in one.lost)
        for one in pair:
            one.give_back(number)
            one.later = max(0.0, one.later + (STEP if number in one.won else -STEP))
    for one in pair:
        one.door.close()
    struck = sum(winners.values()) == ROUNDS and all(one.won for one in pair)  # else nobody raced
    found = _judged(winners, heard)
    wins = ", ".join(f"{one.name} {len(one.won)}" for one in pair)
    return {"struck": struck, "exit": 0, "first": found, "second": found, "notes": [f"{ROUNDS} rounds, won: {wins}"]}


def _judged(winners: Counter[int], heard: Counter[str]) -> list[Any]:
    if winners[2]:
        return ["half", [f"both had the lease in {winners[2]} of {ROUNDS} rounds"]]
    if winners[0] or set(heard) != {"held"}:
        return ["unknown", [f"nobody had the lease in {winners[0]} of {ROUNDS} rounds; heard: {dict(heard)}"]]
    return ["restored", []]
