"""The shipped command line, with faults at chosen events: `driver.py FAULTS.json -- apply plan.yml`.

FAULTS.json: {"trace": FILE, "faults": [{"when": "before" or "after", "kind": "write.intent", "number": 1, "do": ...}]}.
`do` is a signal's name without SIG, sent by the process to itself, or `ask`: the event is written to the trace and the
process waits until the file `TRACE.N` answers line N, so that whoever watches can do what it wants in between.
Every fault leaves its line in the trace before it happens.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from changectl.cli.main import main
from changectl.core.ports import Event, Journal, Json

ASK = "ask"
ASK_TIMEOUT = 180.0  # seconds
POLL = 0.02


@dataclass(frozen=True)
class Fault:
    """What happens right before or right after the n-th event of a kind is committed."""

    when: str
    kind: str
    number: int
    do: str


def acknowledgement(trace: Path, number: int) -> Path:
    """The file that answers the question in line `number` (from 1) of the trace."""
    return trace.with_name(f"{trace.name}.{number}")


@dataclass
class FaultyJournal:
    """The journal of the run, with faults around its commits."""

    inner: Journal
    faults: Sequence[Fault]
    trace: Path
    _seen: Counter[str] = field(default_factory=Counter)
    _lines: int = 0

    def append(self, run: str, kind: str, body: Json, *, step: int = 0) -> Event:
        """Commit one event, with what is to happen before and after it."""
        self._seen[kind] += 1
        self._strike("before", kind)
        event = self.inner.append(run, kind, body, step=step)
        self._strike("after", kind)
        return event

    def events(self, run: str) -> Sequence[Event]:
        """As the journal itself."""
        return self.inner.events(run)

    def __getattr__(self, name: str) -> Any:
        # Whatever else the journal offers is not about committing.
        return getattr(self.inner, name)

    def _strike(self, when: str, kind: str) -> None:
        for fault in self.faults:
            if (fault.when, fault.kind, fault.number) == (when, kind, self._seen[kind]):
                self._note(fault)
                self._do(fault)

    def _note(self, fault: Fault) -> None:
        self._lines += 1
        line = {"when": fault.when, "kind": fault.kind, "number": fault.number, "do": fault.do, "at": time.time()}
        with self.trace.open("ab") as file:
            file.write(json.dumps(line).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def _do(self, fault: Fault) -> None:
        if fault.do != ASK:
            os.kill(os.getpid(), signal.Signals[f"SIG{fault.do}"])
            return
        answer, deadline = acknowledgement(self.trace, self._lines), time.monotonic() + ASK_TIMEOUT
        while not answer.exists():
            if time.monotonic() > deadline:
                raise TimeoutError(f"nobody answered {fault}")
            time.sleep(POLL)


@dataclass(frozen=True)
class Faulty:
    """Puts the faults around the journal of the command that runs."""

    faults: Sequence[Fault]
    trace: Path

    def journal(self, journal: Journal) -> Journal:
        """The journal with its faults."""
        return FaultyJournal(journal, self.faults, self.trace)


def read(document: Mapping[str, Any]) -> Faulty:
    """The faults of a document."""
    return Faulty([Fault(**fault) for fault in document["faults"]], Path(document["trace"]))


if __name__ == "__main__":
    orders, separator, *words = sys.argv[1:]
    if separator != "--":
        raise SystemExit("driver.py FAULTS.json -- COMMAND ...")
    raise SystemExit(main(words, around=read(json.loads(Path(orders).read_text()))))
