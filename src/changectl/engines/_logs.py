"""Finding the root of a failed start in a log: the deepest process's first exception, not the last line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from changectl.core.engine import Cause, FailureLine

# Shared by everything that runs on a host, whatever the engine.
COMMON: tuple[FailureLine, ...] = (
    FailureLine(
        r"oom-kill|Out of memory: Killed process|killed by the OOM killer|result 'oom-kill'",
        "host_out_of_memory",
        "the kernel killed a process: host memory, not GPU memory, is short",
        certain=False,
    ),
    FailureLine(
        r"Driver/library version mismatch",
        "driver_mismatch",
        "the NVIDIA library is newer than the loaded driver: reboot or reload the driver; no setting helps",
        certain=False,
    ),
    FailureLine(
        r"driver version is insufficient for CUDA runtime version",
        "driver_too_old",
        "the driver is older than this engine's CUDA needs",
    ),
    FailureLine(
        r"Failed to initialize NVML|no NVIDIA GPU|No CUDA GPUs are available|CUDA driver initialization failed",
        "no_gpu",
        "the process does not see a GPU",
        certain=False,
    ),
    FailureLine(
        r"CUDA out of memory|OutOfMemoryError|cudaMalloc failed: out of memory|CUDA_ERROR_OUT_OF_MEMORY",
        "gpu_out_of_memory",
        "lower what takes GPU memory: context, parallel sequences, memory fraction; or look for another process",
        certain=False,
    ),
    FailureLine(
        r"shared memory segment /dev/shm|No space left on device|Errno 28",
        "no_space",
        "a file system is full; it may be /dev/shm rather than a disk",
        certain=False,
    ),
    FailureLine(
        r"[Aa]ddress already in use|couldn't bind HTTP server socket|Failed to bind socket",
        "port_in_use",
        "another process holds the port: perhaps a leftover of the earlier start",
    ),
    FailureLine(
        r"Permission denied|Errno 13\b|PermissionError",
        "permission",
        "the service's user may not read it",
        certain=False,
    ),
    FailureLine(
        r"status=(?:203/EXEC|200/CHDIR|217/USER|226/NAMESPACE)",
        "unit_cannot_execute",
        "systemd could not start the program: path, folder, user or mounts of the unit",
    ),
    FailureLine(
        r"[Ii]llegal instruction|status=4/ILL",
        "illegal_instruction",
        "the program was built for a newer processor",
    ),
    FailureLine(
        r"Start request repeated too quickly|start-limit-hit",
        "start_limit",
        "systemd's start limit: the cause is in an earlier start",
        generic=True,
    ),
)

_LINES_BELOW = 3
_PROCESS = re.compile(r"\((?P<process>[A-Za-z]\w*)(?:\s+(?:pid|ip)=[^)]*)*\)\s*")
_LEVEL = re.compile(r"^\s*(?:ERROR|CRITICAL)\s+[\d-]+\s+[\d:.]+\s+(?:\[[^\]]*\]\s?)?")
_EXCEPTION = re.compile(
    r"^(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt|Timeout|Refused))(?::\s*(?P<text>.*))?$"
)


def matching(line: str, table: Sequence[FailureLine]) -> FailureLine | None:
    """The first row of the table that knows the line."""
    return next((row for row in table if re.search(row.pattern, line)), None)


def first_known(lines: Sequence[str], table: Sequence[FailureLine]) -> Cause | None:
    """The earliest line with a specific cause; where there is none, the earliest generic one."""
    fallback: Cause | None = None
    for line in lines:
        row = matching(line, table)
        if row is None:
            continue
        cause = Cause(row.cause, line.strip(), row.hint, row.certain and not row.generic)
        if not row.generic:
            return cause
        fallback = fallback or cause
    return fallback


def first_exception(lines: Sequence[str], depths: Sequence[str], table: Sequence[FailureLine]) -> Cause | None:
    """The first exception of the deepest process that has one.

    A Python traceback prints the root first and its followers after it ("the direct cause of ..."), and a process that
    waits for a deeper one only repeats that it failed. `depths` lists prefixes of process names, deepest first; lines
    without a process come last.
    """
    placed = [_place(line, depths) for line in lines]
    found = [
        (depth, index)
        for index, (depth, text) in enumerate(placed)
        if _EXCEPTION.match(text) and not _is_generic(text, table)
    ]
    if not found:
        return None
    depth, index = min(found)
    text = placed[index][1]
    # Some exceptions say what they are about only in the lines below their name.
    below = [text for near, text in placed[index + 1 : index + 1 + _LINES_BELOW] if near == depth]
    for candidate in (text, *below):
        row = matching(candidate, table)
        if row is not None and not row.generic:
            return Cause(row.cause, candidate, row.hint, row.certain)
    # pydantic counts its complaints in the exception's line and tells them below it.
    counted = re.search(r": \d+ validation errors? for ", text)
    return Cause("exception", " ".join([text, *below[:1]]) if counted else text)


def _is_generic(text: str, table: Sequence[FailureLine]) -> bool:
    row = matching(text, table)
    return row is not None and row.generic


def last_start(lines: Sequence[str], marker: str) -> list[list[str]]:
    """The log cut into starts at lines matching `marker`, latest first; lines before the first marker are their own."""
    starts: list[list[str]] = [[]]
    for line in lines:
        if re.search(marker, line):
            starts.append([])
        starts[-1].append(line)
    return [start for start in reversed(starts) if start]


def _place(line: str, depths: Sequence[str]) -> tuple[int, str]:
    """The depth of the line's process (0 is deepest) and the text behind all prefixes."""
    depth = len(depths)
    text = line.strip()
    # Some lines carry two prefixes, an outer and an inner process; a journal adds its own before them.
    while match := _PROCESS.search(text):
        if match.start() > 0 and not _is_journal_prefix(text[: match.start()]):
            break
        found = [index for index, name in enumerate(depths) if match["process"].startswith(name)]
        depth = min([depth, *found])
        text = text[match.end() :]
    return depth, _LEVEL.sub("", text).strip()


def _is_journal_prefix(text: str) -> bool:
    return bool(re.fullmatch(r"(?:\S+\s+\|\s*|.*?\S+\[\d+\]:\s*)", text))
