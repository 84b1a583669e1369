"""The figures of a host and of a service on it: units and meanings. How they are computed stands in `host_window`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a host: its unit, what it says, and from which part of a look it comes."""

    unit: str
    meaning: str
    part: str


FIGURES: Mapping[str, Figure] = {
    "cpu": Figure("share", "all cores: share of their time that they were busy", "cores"),
    "busiest_core": Figure("share", "the core with the highest mean", "cores"),
    "iowait": Figure("share", "all cores: idle while something waited for a disk", "cores"),
    "steal": Figure("share", "all cores: taken by the hypervisor", "cores"),
    "run_queue": Figure("threads", "threads that run or want to", "queue"),
    "blocked": Figure("threads", "threads that wait for a disk", "queue"),
    "service_cpu": Figure("cores", "what all threads of the service used together", "threads"),
    "busiest_thread": Figure("share", "of one core: the service's thread with the highest mean", "threads"),
    "run_delay": Figure(
        "share",
        "time that a thread of the service waited for a core, counted when the wait ends: the worst one",
        "threads",
    ),
    "throttled": Figure("share", "time that the service was stopped for its CPU quota", "throttled_us"),
    "service_memory": Figure("bytes", "resident memory of the service's processes", "rss"),
    "memory_available": Figure("bytes", "memory that could be given out without swapping", "memory"),
    "swap_used": Figure("bytes", "swap in use; its rate says whether anything waits for it", "memory"),
    "swap_in": Figure("bytes/s", "read back from swap", "vmstat"),
    "swap_out": Figure("bytes/s", "written to swap", "vmstat"),
    "major_faults": Figure("1/s", "pages that had to be read from a disk", "vmstat"),
    "psi_cpu": Figure("share", "time in which some thread waited for a core (PSI some)", "pressure"),
    "psi_memory": Figure("share", "time in which some thread waited for memory (PSI some)", "pressure"),
    "psi_io": Figure("share", "time in which some thread waited for a disk (PSI some)", "pressure"),
    "disk_read": Figure("bytes/s", "read from all disks", "disks"),
    "disk_write": Figure("bytes/s", "written to all disks", "disks"),
    "disk_wait": Figure("s", "for each read or write of a disk", "disks"),
    "network_in": Figure("bytes/s", "received, loopback left out", "network"),
    "network_out": Figure("bytes/s", "sent, loopback left out", "network"),
    "gpu_use": Figure("share", "time in which some kernel ran: the GPU with the highest mean", "gpus"),
    "gpu_memory": Figure("bytes", "memory in use: the fullest GPU", "gpus"),
    "gpu_power": Figure("W", "the GPU that took most", "gpus"),
    "gpu_temperature": Figure("C", "the hottest GPU", "gpus"),
}
COUNTS: Mapping[str, Figure] = {
    "network_errors": Figure("packets", "damaged, loopback left out", "network"),
    "network_dropped": Figure("packets", "thrown away, loopback left out; unwanted protocols count, too", "network"),
    "segments": Figure("segments", "TCP segments sent", "tcp"),
    "retransmits": Figure("segments", "TCP segments sent again", "tcp"),
    "listen_overflows": Figure("connections", "that found the queue of a listener full", "tcp"),
    "oom_kills": Figure("processes", "ended on this host for lack of memory", "vmstat"),
    "service_oom_kills": Figure("processes", "of the service, ended for lack of memory", "memory_events"),
    "restarts": Figure("times", "that the service's main process was another one, at the least", "process"),
}
