"""What the workflow needs from the outside world. Adapters and the store fulfil these; tests bring fakes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from changectl.core.cost import Spent
from changectl.core.lease import Lease
from changectl.core.observed import StatusProcess
from changectl.core.trial.noise_learned import Learned

if TYPE_CHECKING:
    from changectl.core.history.out_of_service import OutOfService  # which reads the events that are declared here

Json = Mapping[str, Any]
Progress = Callable[[Json], None]


@dataclass(frozen=True, slots=True)
class HostAddress:
    """One inventory host with everything that connecting to it needs, as Ansible would use it."""

    name: str
    variables: Mapping[str, Any] = field(default_factory=dict)  # may hold secrets: never printed, never recorded


class Inventory(Protocol):
    """The operator's Ansible inventory."""

    def hosts(self, pattern: str) -> Sequence[HostAddress]:
        """The hosts of a group or a single host, in inventory order, `--limit` applied; empty when nothing matches."""

    def host(self, name: str) -> HostAddress | None:
        """One host by its name, whatever `--limit` says: for one that is not changed. None: there is none."""


class Door(Protocol):
    """An open conversation with the host program on one host; for reading, staging and watching.

    It never changes the service: that goes through `Playbooks`.
    """

    def call(
        self,
        name: str,
        args: Json,
        *,
        timeout: float,
        progress: Progress | None = None,
        silence: float | None = None,
    ) -> dict[str, Any]:
        """Ask the host program; returns its answer.

        Args:
            name: the call.
            args: its arguments.
            timeout: seconds that the call may go without an answer and without progress.
            progress: told what the call says meanwhile.
            silence: seconds without a sign of life from us after which the host ends what it runs for the call, and
                itself; some seconds later the contact counts as lost. For what must not go on alone. The answer then
                has `silent`: the longest time, in seconds, in which nothing was heard.

        Raises:
            HostCallError: it answered that it did not do it.
            ContactLost: nothing was heard for `timeout` seconds (progress counts), or the connection ended.
        """

    def close(self) -> None:
        """End the conversation; the remote process ends with it."""


class Doors(Protocol):
    """Opens doors; one per host, kept open for the run."""

    def open(self, host: HostAddress) -> Door:
        """Connect (host key checked, as Ansible would) and start the host program. Raises ContactLost or Refused."""


class Beating(Protocol):
    """A lease that is being kept alive."""

    @property
    def lost(self) -> str | None:
        """Why the lease is ours no more, as the host said; None: as far as is known it is."""

    @property
    def left(self) -> float:
        """Seconds until the host acts by itself if it hears nothing more."""

    def stop(self) -> None:
        """Give no more signs of life."""


class Heart(Protocol):
    """Gives signs of life to hosts while a run acts there."""

    def beat(self, host: HostAddress, lease: Lease, args: Json) -> Beating:
        """Extend the lease again and again until it is stopped or lost; `args` are those of the call `extend`."""


@dataclass(frozen=True, slots=True)
class PlayResult:
    """What one play did on one host: the answers of the host program's module, in order."""

    answers: Sequence[dict[str, Any]]


class Playbooks(Protocol):
    """Runs one of our plays against exactly one host through ansible-runner."""

    def run(self, play: str, host: HostAddress, arguments: Json, *, timeout: float) -> PlayResult:
        """Run `playbooks/PLAY.yml`; counts only if the final stats arrived and name the host.

        Raises:
            HostCallError: the host program refused or failed; its reason and text.
            ContactLost: unreachable, or no final stats: what happened on the host is unknown.
        """


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the journal."""

    sequence: int
    run: str
    step: int  # 0: the run itself
    kind: str  # "run.opened", "write.intent", "write.outcome", "verdict", ...
    at: str  # ISO 8601 with microseconds, UTC, the controller's clock
    body: Json
    hash: str


class Journal(Protocol):
    """Append-only and hash-chained: an event is on disk when `append` returns."""

    def append(self, run: str, kind: str, body: Json, *, step: int = 0) -> Event:
        """Commit one event. Raises ChangectlError when it cannot be stored: then nothing may be done either."""

    def events(self, run: str) -> Sequence[Event]:
        """All events of a run, oldest first."""


class Records(Protocol):
    """Locks, bulky evidence and saved bytes, beside the journal."""

    def lock(self, service: str, run: str, owner: str) -> AbstractContextManager[Mapping[str, str] | None]:
        """Hold the service's one open change; entering it names the dead holder it was taken from, for the journal.

        Raises Locked, naming run and owner, when a live one exists.
        """

    def put_blob(self, data: bytes) -> str:
        """Keep evidence (measurement records, logs) compressed; returns its SHA-256."""

    def get_blob(self, digest: str) -> bytes:
        """The bytes of `put_blob`; checked against the digest. Raises ChangectlError when missing or changed."""

    def put_snapshot(self, run: str, host: str, data: bytes) -> str:
        """Keep saved configuration encrypted with the key file; returns the SHA-256 of the plain bytes."""

    def get_snapshot(self, digest: str) -> bytes:
        """The plain bytes of `put_snapshot`, checked. Raises ChangectlError: missing, changed, or the wrong key."""


class Reporter(Protocol):
    """Tells the person what is going on (stderr); never the place of a result."""

    def note(self, text: str) -> None:
        """One finished thing."""

    def waiting(self, what: str, *, elapsed: float, expected: float | None) -> None:
        """Something takes time: what it does now, seconds so far, seconds it may take if known."""


class Clock(Protocol):
    """Time, so that tests need not wait."""

    def now(self) -> str:
        """ISO 8601 in UTC with microseconds."""

    def monotonic(self) -> float:
        """Seconds that only grow."""

    def sleep(self, seconds: float) -> None:
        """Wait."""


@dataclass(frozen=True, slots=True)
class ChecksResult:
    """What the operator's own checks said."""

    passed: int
    failed: int
    report: str  # the tail of their output

    @property
    def ok(self) -> bool:
        """Whether at least one check ran and none failed: a file without tests proves nothing."""
        return self.failed == 0 and self.passed > 0


class Checks(Protocol):
    """Runs the operator's testinfra files against a host."""

    def run(self, files: Sequence[str], host: HostAddress) -> ChecksResult:
        """Run them; an error while collecting counts as a failure."""


class Memory(Protocol):
    """What earlier runs left behind that this one wants to know."""

    def load_seconds(self, service: str) -> float | None:
        """How long the service's last good start took; None: never measured."""

    def spent(self, service: str, load: Json) -> Spent:
        """How long starts, ways back and measurements with this very load took on the service so far."""

    def start_log(self, service: str, host: str, process: StatusProcess) -> list[str]:
        """What this very process said while an earlier run waited for its first answer; empty: that is not kept."""

    def unfinished(self, service: str) -> Sequence[str]:
        """Runs on the service whose end is not recorded, or that need a person, and that nobody settled since."""

    def out_of_service(self, service: str) -> Mapping[str, OutOfService]:
        """Instances that earlier runs on the service left out of it, by name, as far as the record knows."""

    def model_manifest(self, service: str, host: str) -> dict[str, object] | None:
        """The manifest of the model that an earlier run kept; None: none."""

    def learned(self) -> Sequence[Learned]:
        """What all trials found out about noise; of one that went on in a later run, that of the later run alone."""
