"""Was a configuration file edited after the service started? Then a restart may activate that edit as well."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 12
CHECK = Check("edited_since_start", "advice")
SLACK = 0.5  # seconds: file times and process start times come from different clocks, read exactly


def check(situation: Situation) -> CheckResult:
    """Modification times against the start of the process; files that do not exist are left out."""
    observed = situation.observed
    started = observed.process.started_at if observed and observed.process else None
    if observed is None or started is None:
        return CHECK.unknown("not known when the service started")
    times = {path: facts.mtime_ns for path, facts in observed.files.items() if facts.exists is not False}
    if not times or None in times.values():
        return CHECK.unknown("not known when the configuration files were edited")
    newer = [path for path, time in times.items() if time is not None and time / 1e9 > started + SLACK]
    if newer:
        return CHECK.failed(
            f"edited after the service started: {', '.join(newer)}",
            "see what was edited: the restart activates it together with this change",
        )
    return CHECK.passed("no configuration file is newer than the running service", figure=f"{len(times)} files")
