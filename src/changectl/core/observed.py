"""What hosts answered, with types: a view on the host program's calls. What a host left out is None, never a default.

Only what a later decision cannot do without is demanded; everything else may be missing, and whoever needs it has to
say what its absence means.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field

from changectl.core.observed_base import Answer
from changectl.core.observed_host import (
    Gpu,
    GpuDriver,
    HostFacts,
    Memory,
    Model,
    ModelFile,
    ModelProblem,
    Nvml,
    Readable,
    Sampled,
)

__all__ = [
    "Answer", "Capture", "CaptureFile", "EnvironmentFile", "FileFacts", "Gpu", "GpuDriver", "Hello", "Help",
    "HostFacts", "ManagerFacts", "Memory", "Model", "ModelFile", "ModelProblem", "Nvml", "Observed", "PortOwner",
    "ProcessFacts", "Readable", "Sampled", "Status", "StatusProcess", "UnitVerify",
]  # fmt: skip


class FileFacts(Answer):
    """One configuration file as it lies on the host."""

    exists: bool | None = None  # None: it could not be looked at; `error` says why
    error: str | None = None
    resolved: str | None = None
    is_link: bool | None = None
    nlink: int | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    owner: str | None = None
    group: str | None = None
    mtime_ns: int | None = None
    size: int | None = None
    sha256: str | None = None
    xattrs: Mapping[str, str] | None = None
    immutable: bool | None = None
    mount_point: bool | None = None
    content: str | None = Field(default=None, repr=False)  # base64; may hold secrets
    readable_by_service: bool | None = None

    @property
    def data(self) -> bytes | None:
        """The bytes; None: the file does not exist or its content was not asked for."""
        return None if self.content is None else base64.b64decode(self.content)


class ProcessFacts(Answer):
    """The running main process and its tree."""

    pid: int
    start_ticks: int | None = None  # together with pid: this process and no later one with the same number
    started_at: float | None = None  # seconds since the epoch
    argv: list[str] | None = Field(default=None, repr=False)
    environ: Mapping[str, str] | None = Field(default=None, repr=False)
    cwd: str | None = None
    exe: str | None = None
    program: list[int] | None = None  # size, time and inode of the file that runs: a replaced program is another one
    venv: str | None = None  # the Python environment that its name leads to; "": none
    uid: int | None = None
    gids: list[int] | None = None
    user: str | None = None
    limits: Mapping[str, Any] | None = None
    tree: list[int] | None = None
    listens: list[int] | None = None
    rss_bytes: int | None = None

    @property
    def runs(self) -> list[str | int] | None:
        """Which program it is, whatever it is called; None: cannot be told, and then it is no other process's either.

        Beside the file its Python environment: two names of one interpreter may lead to different packages.
        """
        if self.exe is None or self.program is None or self.venv is None:
            return None
        return [self.exe, *self.program, self.venv]


class EnvironmentFile(Answer):
    """An EnvironmentFile= of a unit; an optional one may be missing on disk."""

    path: str
    optional: bool = False


class ManagerFacts(Answer):
    """What the manager says about the service; empty for managers that know nothing beyond the process."""

    unit: str | None = None
    show: Mapping[str, str | list[str]] | None = None  # properties as `systemctl show` prints them
    files: list[str] | None = None  # fragment, then drop-ins in effective order
    env_files: list[EnvironmentFile] | None = None
    need_daemon_reload: bool | None = None
    exec_start: str | list[str] | None = None


class PortOwner(Answer):
    """Who listens on a port."""

    pid: int
    argv: list[str] | None = None


class Observed(Answer):
    """The answer of `inspect`: the manager, its process and the configuration files."""

    manager: ManagerFacts = ManagerFacts()
    process: ProcessFacts | None = None
    files: Mapping[str, FileFacts] = Field(default_factory=dict)
    port_owner: PortOwner | None = None
    port_asked: bool = False

    @classmethod
    def read(cls, answer: Any) -> Self:
        """As every answer; remembers whether the port's owner was asked for (nobody there is not "not asked")."""
        asked = isinstance(answer, Mapping) and "port_owner" in answer
        return super().read({**answer, "port_asked": asked} if isinstance(answer, Mapping) else answer)

    def content(self, path: str) -> bytes | None:
        """A file's bytes; None: not there, or not asked for."""
        facts = self.files.get(path)
        return facts.data if facts else None


class StatusProcess(Answer):
    """The process while it starts: enough to see that it is the same one and that it gets on."""

    pid: int
    start_ticks: int | None = None
    started_at: float | None = None
    read_bytes: int | None = None
    rss_bytes: int | None = None
    threads: int | None = None
    cpu_seconds: float | None = None  # of the whole tree


class Status(Answer):
    """The answer of `status`."""

    active: str
    sub: str | None = None  # the manager's own finer word: start-pre, running, auto-restart, ...
    restarts: int | None = None
    result: str | None = None
    exec_status: int | None = None
    memory_events: Mapping[str, int] | None = None  # what the service's cgroup counted: oom_kill, ...
    process: StatusProcess | None = None
    log: list[str] = Field(default_factory=list)
    start_log: list[str] = Field(default_factory=list)  # what the running service logged first, where it was asked for
    cursor: str | None = None
    listens: list[int] | None = None
    now: float | None = None  # the host's clock, to be compared with `process.started_at` only

    @property
    def preparing(self) -> bool:
        """Whether the manager still does what comes before the main process (ExecStartPre=), so that none is due."""
        return self.active == "activating" and self.sub in ("condition", "start-pre", "start")

    @property
    def identity(self) -> tuple[int, int | None] | None:
        """Which process it is: its id, and when it started, so that no later one with the same id is taken for it."""
        return (self.process.pid, self.process.start_ticks) if self.process else None

    @property
    def whole_log(self) -> list[str]:
        """The first lines of the running service, where asked for, and the latest ones; some may stand in both."""
        return [*self.start_log, *self.log]

    @property
    def running_for(self) -> float | None:
        """Seconds since the process started, by the host's own clock; None: no process, or not told."""
        started = self.process.started_at if self.process else None
        return None if started is None or self.now is None else max(0.0, self.now - started)


class Hello(Answer):
    """The answer of `hello`."""

    python: str
    program: str | None = None  # version of the host program
    executable: str | None = None
    uid: int | None = None
    user: str | None = None
    hostname: str | None = None
    boot_id: str | None = None
    wall_time: float | str | None = None
    systemd: bool | None = None
    kubernetes: bool | None = None
    container: str | None = None


class UnitVerify(Answer):
    """The answer of `unit_verify`: warnings for the unit as it is and as it would be."""

    before: list[str]
    after: list[str]


class Help(Answer):
    """The answer of `help`."""

    text: str
    exit_status: int | None = None


class CaptureFile(Answer):
    """One file as saved."""

    sha256: str | None = None
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    xattrs_sha256: str | None = None


class Capture(Answer):
    """The answer of `capture`: what was saved and whether a scratch restore gave the same."""

    restorable: bool
    problems: list[Any] = Field(default_factory=list)
    files: Mapping[str, CaptureFile | None] = Field(default_factory=dict)
    digest: str | None = None
    folder: str | None = None  # the run's, on the host

    def state_dir(self, run: str) -> str | None:
        """The state folder that the run's folder lies in; None: the host does not tell."""
        end = f"/runs/{run}"
        return self.folder.removesuffix(end) if self.folder and self.folder.endswith(end) else None
