"""There is room on the host for what the run saves and writes, and the file systems are writable."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation, format_bytes

ORDER = 40
CHECK = Check("disk_space", "required")
LEAST = 64 * 1024 * 1024  # bytes for the run's folder: snapshot, program, logs, measurement
LEAST_BESIDE = 1024 * 1024  # bytes beside an edited file: its new version is staged there


def check(situation: Situation) -> CheckResult:
    """The run's folder needs the most, an edited file's place room for one more version; nothing else is written."""
    host = situation.host
    if host is None or not host.disks:
        return CHECK.unknown("free space was not read")
    needed = max(LEAST, situation.bytes_needed or 0)
    short, untold, figures = [], [], []
    for path in dict.fromkeys([situation.state_path, *situation.edited_files]):
        free = host.free_bytes(path)
        if free is None:
            untold.append(path)
            continue
        least = needed if path == situation.state_path else LEAST_BESIDE
        figures.append(f"{path}: {format_bytes(free)} free")
        if host.read_only(path):
            short.append(f"{path} is on a read-only file system")
        elif free < least:
            short.append(f"{path} needs {format_bytes(least)}, has {format_bytes(free)}")
    if short:
        return CHECK.failed("; ".join(short), "make room, or set state_dir in the service file", "; ".join(figures))
    if untold:
        return CHECK.unknown(f"free space at {', '.join(untold)} is not known", figure="; ".join(figures))
    return CHECK.passed(f"{format_bytes(needed)} needed for the run", figure="; ".join(figures))
