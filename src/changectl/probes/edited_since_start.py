"""Was a configuration file edited after the service started? Then a restart may activate that edit as well."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from changectl.core.counting import counted
from changectl.core.precheck import Check, CheckResult, Situation

ORDER = 12
CHECK = Check("edited_since_start", "advice", reads_process=True)
SLACK = 0.5  # seconds: file times and process start times come from different clocks, read exactly


def check(situation: Situation) -> CheckResult:
    """Modification times against the start of the process; files that do not exist are left out.

    What arguments and environment show was compared by values_agree already: there a newer file is told, no more. A
    file that the engine reads itself shows nowhere else, so there it refuses.
    """
    observed = situation.observed
    started = observed.process.started_at if observed and observed.process else None
    own = set(situation.read_by_engine)
    if observed is None or started is None:
        return _of(own, CHECK.unknown("not known when the service started"))
    times = {path: facts.mtime_ns for path, facts in observed.files.items() if facts.exists is not False}
    unread = sorted(path for path in {*times, *own} if times.get(path) is None)
    if not times or unread:
        return _of(own & {*unread}, CHECK.unknown("not known when the configuration files were edited"))
    newer = [path for path, time in times.items() if time is not None and time / 1e9 > started + SLACK]
    if newer:
        failed = CHECK.failed(
            f"edited after the service started: {', '.join(newer)}",
            "see what was edited: the restart activates it together with this change",
        )
        return _of(own & {*newer}, failed)
    return CHECK.passed("no configuration file is newer than the running service", figure=counted(len(times), "file"))


def _of(own: Collection[str], result: CheckResult) -> CheckResult:
    """Required, where it is about a file that only the engine can tell anything about."""
    if not own:
        return result
    hint = f"{result.hint or 'start the service anew first'}; the process does not show what it took from them"
    return replace(result, level="required", hint=hint)
