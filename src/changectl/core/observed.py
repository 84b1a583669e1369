"""What hosts answered, with types: a view on the host program's calls. What a host left out is None, never a default.

Only what a later decision cannot do without is demanded; everything else may be missing, and whoever needs it has to
say what its absence means.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from changectl.core.errors import HostCallError


class Answer(BaseModel):
    """Base of all answers: read-only; what a newer host program adds is kept out of the way."""

    model_config = ConfigDict(frozen=True, extra="ignore", protected_namespaces=())

    @classmethod
    def read(cls, answer: Any) -> Self:
        """Take a host call's answer.

        Raises:
            HostCallError: reason `bad_answer`; a demanded field is missing or of the wrong type, and which.
        """
        try:
            return cls.model_validate(answer)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = "/".join(str(part) for part in first["loc"]) or "the answer"
            raise HostCallError(
                f"the host's answer is not understood: {cls.__name__}: {place}: {first['msg']}", reason="bad_answer"
            ) from None


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
    uid: int | None = None
    gids: list[int] | None = None
    user: str | None = None
    limits: Mapping[str, Any] | None = None
    tree: list[int] | None = None
    listens: list[int] | None = None
    rss_bytes: int | None = None


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


class Status(Answer):
    """The answer of `status`."""

    active: str
    restarts: int | None = None
    result: str | None = None
    exec_status: int | None = None
    process: StatusProcess | None = None
    log: list[str] = Field(default_factory=list)
    cursor: str | None = None
    listens: list[int] | None = None


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


class Memory(Answer):
    """Host memory in bytes."""

    total: int | None = None
    available: int | None = None
    swap_total: int | None = None
    swap_free: int | None = None


class GpuDriver(Answer):
    """What the host tells about a GPU driver without NVML: loaded kernel module and installed library."""

    present: bool | None = None
    driver: str | None = None  # version of the loaded kernel module
    library: str | None = None  # path of the user-space library
    library_version: str | None = None  # as its file name says; has to be the driver's


class HostFacts(Answer):
    """The answer of `host`: the host specification."""

    kernel: str | None = None
    memory: Memory | None = None
    disks: Mapping[str, Any] | None = None  # path -> free bytes, or {free: bytes, ...}
    gpu: GpuDriver | None = None
    missing: Mapping[str, str] = Field(default_factory=dict)

    def free_bytes(self, path: str) -> int | None:
        """Free space where `path` lies; None: not told."""
        found = (self.disks or {}).get(path)
        if isinstance(found, Mapping):
            found = next((found[key] for key in ("free", "available", "free_bytes") if key in found), None)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def read_only(self, path: str) -> bool:
        """Whether the file system at `path` is known to be read-only."""
        found = (self.disks or {}).get(path)
        return isinstance(found, Mapping) and found.get("read_only") is True


class ModelFile(Answer):
    """One file of the model."""

    path: str
    size: int | None = None
    mtime_ns: int | None = None
    mode: int | None = None
    sha256: str | None = None
    header: str | None = None  # gguf, safetensors, ...; None: another kind of file
    facts: Mapping[str, Any] | None = None  # the header's own figures, where the host reads them


class ModelProblem(Answer):
    """Why a model file is not whole."""

    path: str
    problem: str


class Readable(Answer):
    """Whether the service's user can read all model files."""

    uid: int | None = None
    all: bool
    denied: list[str] = Field(default_factory=list, alias="not")
    acl_considered: bool | None = None


class Model(Answer):
    """The answer of `model`: the manifest of the model's files and what is wrong with them."""

    files: list[ModelFile]
    problems: list[ModelProblem]
    total_bytes: int | None = None
    readable_by: Readable | None = None

    def facts(self) -> Mapping[str, Any]:
        """The figures of the first file that has any; empty: none were read."""
        return next((file.facts for file in self.files if file.facts), {})


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


class Gpu(Answer):
    """One GPU as NVML sees it; memory in bytes."""

    index: int | None = None
    name: str | None = None
    memory_total: int | None = None
    memory_used: int | None = None
    memory_free: int | None = None


class Nvml(Answer):
    """The answer of `nvml`: the GPUs, or in `none` why there are none."""

    gpus: list[Gpu] | None = None
    driver: str | None = None
    none: str | None = None
