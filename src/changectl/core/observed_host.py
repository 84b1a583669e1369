"""What hosts answered about themselves and about the model: memory, disks, GPUs, the model's files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from changectl.core.observed_base import Answer


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
    counters: Mapping[str, int] | None = None  # since boot: oom_kill, pswpin, pswpout
    kernel_log: list[str] | None = None  # what the kernel said of killed processes and broken GPUs
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
    all: bool | None = None  # None: not known, since nothing runs whose user could be asked about
    denied: list[str] = Field(default_factory=list, alias="not")
    unclear: list[str] = Field(default_factory=list)  # an access control list that is not understood
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


class Sampled(Answer):
    """The answer of `sample` with `once`: one look at host and service."""

    look: Mapping[str, Any]
    missing: Mapping[str, str] = Field(default_factory=dict)  # part of the look -> why it could not be read
    threads: Mapping[str, str] = Field(default_factory=dict)  # thread -> what it calls itself
