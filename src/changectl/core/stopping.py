"""How long a stop may take before what is left is killed: one figure for the run and for the check before it."""

from __future__ import annotations

import math

from changectl.core.engine import Engine
from changectl.core.observed import ProcessFacts
from changectl.core.settings import Setting, Value

LEAST = 90.0  # seconds that every service gets
MARGIN = 2.0  # seconds between the end of a drain, or the manager's own kill, and ours


def drain(
    engine: Engine, process: ProcessFacts | None, declared: float | None, setting: Setting | None, to: Value
) -> float | None:
    """Seconds that running requests may take to end before a stop; None: the process is not known.

    Args:
        engine: knows its own drain from the command line.
        process: as it runs.
        declared: what the service file says.
        setting: what the change sets; None: nothing that the engine knows.
        to: the new value: of both drains the longer one counts, since both configurations are stopped.
    """
    if process is None or process.argv is None:
        return None
    environ = process.environ or {}
    now = max(engine.drain_seconds(process.argv, environ), declared or 0.0)
    if setting is None or not setting.flags or to is None:
        return now
    # The last occurrence of a flag counts, so the new value at the end is the command line after the change.
    return max(now, engine.drain_seconds([*process.argv, f"{setting.flags[0]}={to}"], environ))


def stop_timeout(grace: float | None, drained: float | None) -> float:
    """Seconds after which a run kills what a stop left: after the drain, and after the manager would have killed.

    Args:
        grace: the manager's own patience; infinite where it has no limit, None where it does not say.
        drained: the drain; None: not known.
    """
    finite = 0.0 if grace is None or math.isinf(grace) else grace + MARGIN
    return max(LEAST, (drained or 0.0) + MARGIN, finite)


def patience(grace: float, drained: float) -> float:
    """Seconds until somebody kills: the manager, or the run where the manager would wait for ever."""
    return min(grace, stop_timeout(grace, drained))
