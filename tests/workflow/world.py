"""The outside world in memory: one trace of everything that passes a port, and one place where a port can fail."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from changectl.core.cost import Spent
from changectl.core.errors import ChangectlError
from changectl.core.history.out_of_service import OutOfService
from changectl.core.history.runs import runs, still_out
from changectl.core.observed import StatusProcess
from changectl.core.ports import ChecksResult, Event, HostAddress
from changectl.core.trial.noise_learned import Learned

EPOCH = 1_790_000_000.0
PASSED = ChecksResult(1, 0, "1 passed")


@dataclass
class World:
    """Time, the trace, and the faults.

    Attributes:
        before: called with the name of every port call before it is done; may raise, or send a signal.
        trace: the names of the calls, in order: "journal write.intent", "door gpu1 capture", "play gpu1 apply", ...
    """

    before: Callable[[str], None] = lambda name: None
    trace: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def passing(self, name: str) -> None:
        """A call passes a port."""
        self.seconds += 0.01
        self.trace.append(name)
        self.before(name)

    def acts(self) -> list[str]:
        """What was done to hosts or saved, with the journal's intents and outcomes; reading left out."""
        reading = ("hello", "host", "inspect", "status", "probe", "model", "help", "unit_verify", "stage", "measure",
                   "generation", "standing", "sample", "balancer", "connections")  # fmt: skip
        return [
            name
            for name in self.trace
            if name.startswith(("journal", "play", "records"))
            or (name.startswith("door") and name.rpartition(" ")[2] not in reading)
        ]


def moment(world: World) -> str:
    """The world's time as the record writes it."""
    return (datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=world.seconds)).isoformat()


@dataclass
class FakeClock:
    """Sleeping takes no time."""

    world: World

    def now(self) -> str:
        return moment(self.world)

    def monotonic(self) -> float:
        return self.world.seconds

    def sleep(self, seconds: float) -> None:
        self.world.passing("clock sleep")
        self.world.seconds += seconds


@dataclass
class FakeJournal:
    """Append-only, in memory; JSON there and back, as a real one does."""

    world: World
    lines: list[Event] = field(default_factory=list)

    def append(self, run: str, kind: str, body: Mapping[str, Any], *, step: int = 0) -> Event:
        self.world.passing(f"journal {kind}")
        stored = json.loads(json.dumps(body, allow_nan=False))
        event = Event(len(self.lines) + 1, run, step, kind, moment(self.world), stored, "")
        self.lines.append(event)
        return event

    def events(self, run: str) -> Sequence[Event]:
        return [event for event in self.lines if event.run == run]

    def bodies(self, kind: str) -> list[Mapping[str, Any]]:
        return [event.body for event in self.lines if event.kind == kind]


@dataclass
class FakeRecords:
    """Blobs and snapshots by digest."""

    world: World
    blobs: dict[str, bytes] = field(default_factory=dict)
    snapshots: dict[str, bytes] = field(default_factory=dict)
    held: str | None = None

    @contextmanager
    def lock(self, service: str, run: str, owner: str) -> Iterator[Mapping[str, str] | None]:
        self.world.passing("records lock")
        self.held = service
        try:
            yield None
        finally:
            self.held = None

    def put_blob(self, data: bytes) -> str:
        self.world.passing("records put_blob")
        digest = hashlib.sha256(data).hexdigest()
        self.blobs[digest] = data
        return digest

    def get_blob(self, digest: str) -> bytes:
        return self.blobs[digest]

    def put_snapshot(self, run: str, host: str, data: bytes) -> str:
        self.world.passing("records put_snapshot")
        digest = hashlib.sha256(data).hexdigest()
        self.snapshots[digest] = data
        return digest

    def get_snapshot(self, digest: str) -> bytes:
        self.world.passing("records get_snapshot")
        if digest not in self.snapshots:
            raise ChangectlError("this snapshot is gone")
        return self.snapshots[digest]


@dataclass
class FakeReporter:
    """Remembers what a person was told."""

    world: World
    notes: list[str] = field(default_factory=list)
    waits: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.world.passing("reporter note")
        self.notes.append(text)

    def waiting(self, what: str, *, elapsed: float, expected: float | None) -> None:
        self.world.passing("reporter waiting")
        self.waits.append(what)


@dataclass
class FakeMemory:
    """What earlier runs left behind."""

    load: float | None = None
    costs: Spent = field(default_factory=Spent)
    said: list[str] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)
    manifest: dict[str, object] | None = None
    noise: Sequence[Learned] = ()
    journal: FakeJournal | None = None

    def load_seconds(self, service: str) -> float | None:
        return self.load

    def spent(self, service: str, load: Mapping[str, Any]) -> Spent:
        return self.costs

    def start_log(self, service: str, host: str, process: StatusProcess) -> list[str]:
        return self.said

    def unfinished(self, service: str) -> Sequence[str]:
        return self.cut_off

    def out_of_service(self, service: str) -> Mapping[str, OutOfService]:
        found = runs(self.journal.lines if self.journal is not None else [])
        return {one.instance: one for _, one in still_out(found)}

    def model_manifest(self, service: str, host: str) -> dict[str, object] | None:
        return self.manifest

    def learned(self) -> Sequence[Learned]:
        return self.noise


@dataclass
class FakeChecks:
    """The operator's checks, with the answer that a test wants."""

    world: World
    answer: ChecksResult = PASSED
    asked: list[tuple[Sequence[str], str]] = field(default_factory=list)

    def run(self, files: Sequence[str], host: HostAddress) -> ChecksResult:
        self.world.passing("checks run")
        self.asked.append((files, host.name))
        return self.answer


@dataclass
class FakeInventory:
    """Hosts by name; every group holds all of them but the others."""

    addresses: Sequence[HostAddress]
    others: Sequence[HostAddress] = ()

    def hosts(self, pattern: str) -> Sequence[HostAddress]:
        named = [address for address in self.addresses if address.name == pattern]
        return named or self.addresses

    def host(self, name: str) -> HostAddress | None:
        return next((address for address in (*self.addresses, *self.others) if address.name == name), None)
