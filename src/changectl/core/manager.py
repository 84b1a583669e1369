"""What a manager is to a change: it starts the service's process, and says where configuration comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from changectl.core.observed import Observed, Status
from changectl.core.settings import Carrier

Show = Mapping[str, str | list[str]]  # properties as `systemctl show` prints them

# crash_loop: it was started, ended by itself, and waiting longer is pointless.
ServiceState = Literal["up", "starting", "crash_loop", "down"]


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that a value may come from; `data` is None where an optional file is missing on the host."""

    path: str
    data: bytes | None
    kind: Literal["unit", "environment_file", "file"]


@dataclass(frozen=True, slots=True)
class Room:
    """Whether something fits: yes, no, or not known; the figure says it in numbers."""

    ok: bool | None
    figure: str


@runtime_checkable
class Manager(Protocol):
    """What starts the process. Pure: descriptions and answers in, facts out."""

    name: str
    reboot_safe: bool  # whether the service comes back by itself after a reboot

    def target(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The manager's description as host calls take it, from the service file's `manager`.

        Raises:
            InputError: a part is missing or not understood.
        """

    def carrier_files(self, observed: Observed, carrier: Carrier) -> list[tuple[str, bytes]]:
        """The files that make up a carrier, in effective order (the last one wins)."""

    def environment_sources(self, observed: Observed) -> list[SourceFile]:
        """Where environment variables come from, weakest first."""

    def start_limit_room(self, show: Show | None, starts_needed: int) -> Room:
        """Whether that many starts in a row are allowed."""

    def stop_grace(self, show: Show | None) -> float | None:
        """Seconds between the stop signal and the kill; infinite where there is no kill; None: not known."""

    def state(self, status: Status, earlier: Status | None = None) -> ServiceState:
        """How the service is; `earlier` is an earlier status since the same start, to see restarts."""

    def managed_by(self, files: Mapping[str, bytes]) -> str | None:
        """The configuration manager that owns a file, and the file; None: no such header."""

    def needs_daemon_reload_after(self, path: str) -> bool:
        """Whether the manager has to re-read its own files after this one changed."""

    def owns_port(self, observed: Observed, endpoint: str) -> bool | None:
        """Whether the endpoint's port is held by this manager's process tree; None: not known."""

    def missing_safeguards(self, show: Show | None) -> Sequence[str] | None:
        """What is not set that keeps a service running (restart policy, logs); None: not known."""
