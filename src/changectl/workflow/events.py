"""What happened to the service and its host during a phase: what ends a comparison, and what a reader has to know."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.observed import HostFacts, Status

Counters = Mapping[str, int] | None

PAGE_BYTES = 4096  # the kernel counts pages; larger ones are rare, and the figure is only shown
_OUT_OF_MEMORY = re.compile(r"oom-kill|OOM killer|Out of memory: Killed|Memory cgroup out of memory")
_XID = re.compile(r"NVRM: Xid")
_DEVICE_MEMORY = re.compile(r"CUDA out of memory|CUDA error: out of memory|CUDA_ERROR_OUT_OF_MEMORY|HIP out of memory")
_DEVICE = re.compile(
    r"CUDA error|CUDA_ERROR_|cudaError|HIP error|hipError|device-side assert|illegal memory access|uncorrectable ECC"
)
_KILLED = 9  # the signal; systemd tells it as the status of a process that a signal ended
_KILLED_IN_SHELL = 137


@dataclass(frozen=True)
class Look:
    """The service and its host at one moment."""

    status: Status
    host: HostFacts


def hard_events(
    before: Look, after: Look, letter: Literal["A", "B"], when: str = " under load"
) -> tuple[HardEvent, ...]:
    """What needs no statistics: the process is another one, memory ran out, a GPU failed."""
    return tuple(HardEvent(code, text, letter) for code, text in _events(before, after, when))


def _events(before: Look, after: Look, when: str) -> Iterator[tuple[str, str]]:
    was, now = before.status, after.status
    if was.identity is None or now.identity is None:
        yield "process_gone", f"the service's process ended{when}{_how(now)}"
    elif was.identity != now.identity:
        yield "process_restarted", f"the service was restarted{when}"
    log = [*now.log, *(after.host.kernel_log or ())]
    killed = _grown(was.memory_events, now.memory_events, "oom_kill")
    if killed or (now.result == "oom-kill" and was.result != "oom-kill"):
        yield "oom_kill", "the kernel ended a process of the service for lack of memory"
    elif _grown(before.host.counters, after.host.counters, "oom_kill") or any(map(_OUT_OF_MEMORY.search, log)):
        yield "oom_kill", "the kernel ended a process on this host for lack of memory"
    if line := next(filter(_XID.search, log), None):
        yield "gpu_error", f"the driver reported an error of a GPU: {_shown(line)}"
    elif line := next(filter(_DEVICE_MEMORY.search, log), None):
        yield "gpu_out_of_memory", f"the engine ran out of GPU memory under load: {_shown(line)}"
    elif line := next(filter(_DEVICE.search, log), None):
        yield "device_error", f"the engine reported an error of its device: {_shown(line)}"


def _shown(line: str) -> str:
    return line.strip()[:160]


def _how(status: Status) -> str:
    killed = status.exec_status == _KILLED_IN_SHELL or (
        status.exec_status == _KILLED and status.result in ("signal", "oom-kill")
    )
    return ", killed (SIGKILL), as it is done for lack of memory" if killed else ""


def observations(before: Look, after: Look, letter: str) -> tuple[Reason, ...]:
    """What is shown with the verdict: a host that lives on swap measures its disk."""
    pages = _grown(before.host.counters, after.host.counters, "pswpin")
    if not pages:
        return ()
    phase = "before" if letter == "A" else "after"
    text = f"the host read {pages * PAGE_BYTES / 1e6:.1f} MB back from swap during the measurement {phase} the change"
    return (Reason("swapped_in", text),)


def _grown(before: Counters, after: Counters, name: str) -> int:
    """By how much a counter grew; one that began anew counts from zero; 0 where it is not known."""
    old, new = (before or {}).get(name), (after or {}).get(name)
    if old is None or new is None:
        return 0
    return new - old if new >= old else new
