"""GPU memory that a stopped service still holds: the next start would fail for lack of it."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterable, List, Optional

from . import nvml, system
from .failure import Failure
from .state import Run

Record = Dict[str, Any]
_SOURCE = "nvml"  # in the run's folder: the NVML bindings as the controller sent them
_GIB = 1024.0**3


def keep_bindings(run: Run, source: Any) -> None:
    """Keep the bindings for the stops of this run, of which most happen with no controller to ask."""
    if source is None:
        return
    if not isinstance(source, str):
        raise Failure("bad_arguments", "nvml must be the source of the bindings, as the call nvml takes it")
    system.save(run.path(_SOURCE), source.encode())


def read(run: Run) -> Record:
    """What NVML says now; {"none": why} where it cannot be asked."""
    path = run.path(_SOURCE)
    if not os.path.exists(path):
        return {"none": "no NVML bindings were brought to this host"}
    try:
        with open(path, encoding="ascii") as source:
            return nvml.nvml({"source": source.read()})
    except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code: whatever it does, the service has to be stopped
        return {"none": f"NVML cannot be asked: {error}"}


def held(before: Record, now: Record, pids: Iterable[int]) -> List[Record]:
    """The GPUs whose memory the service does not give back: [{index, pids, bytes}].

    Args:
        before: what NVML said while the service ran.
        now: what it says after the stop; a GPU that it does not tell of holds nothing that is known.
        pids: the service's processes.
    """
    service, found = set(pids), []
    later = {gpu.get("uuid") or gpu["index"]: gpu for gpu in now.get("gpus") or []}
    for gpu in before.get("gpus") or []:
        now_there = later.get(gpu.get("uuid") or gpu["index"])
        used = _bytes(gpu, service)
        if now_there is None or not _of(gpu, service):
            continue
        still = _of(now_there, service)
        # A context that hangs belongs to no process any more, but its memory is gone all the same.
        hanging = _nobodys(now_there) - _nobodys(gpu)
        if still or (used and hanging > used / 2):
            found.append(
                {"index": gpu["index"], "pids": still, "bytes": _bytes(now_there, service) if still else hanging}
            )
    return found


def told(gpus: List[Record]) -> str:
    """The finding as a person reads it."""
    return "; ".join(
        f"GPU {gpu['index']} still holds {gpu['bytes'] / _GIB:.1f} GiB of the stopped service"
        + (f" for process {', '.join(map(str, gpu['pids']))}" if gpu["pids"] else ", for no process that NVML names")
        for gpu in gpus
    )


def _of(gpu: Record, pids: Iterable[int]) -> List[int]:
    return sorted({item["pid"] for item in gpu.get("processes") or []} & set(pids))


def _bytes(gpu: Record, pids: Optional[Iterable[int]] = None) -> int:
    """Memory of these processes, or of all; a driver that does not tell counts nothing."""
    wanted = None if pids is None else set(pids)
    items = [item for item in gpu.get("processes") or [] if wanted is None or item["pid"] in wanted]
    return sum(int(item.get("memory_used") or 0) for item in items)


def _nobodys(gpu: Record) -> int:
    return int(gpu.get("memory_used") or 0) - _bytes(gpu)
