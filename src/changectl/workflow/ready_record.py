"""What a wait for a start leaves in the journal: a load time only where there was a start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from changectl.workflow.ready import NotReady, Ready

LOG_RECORDED = 40  # lines of the log that a failed start leaves in the journal


def came_up(ready: Ready, out: float, act: str, log: str | None) -> dict[str, Any]:
    """A process that was started then answers: how long it took to load, and how long the service was out.

    Args:
        ready: what it answered.
        out: seconds since the service was last seen before the act.
        act: what was done to it: restart, write or restore.
        log: the digest of what it said meanwhile; None: nothing, or it could not be kept.
    """
    process = ready.status.process
    which = {} if process is None else process.model_dump(include={"pid", "start_ticks", "started_at"})
    figures = {"seconds": round(ready.seconds, 3), "out_seconds": round(out, 3)}
    return {"ok": True, "started": True, "after": act, **figures, "process": which, "log_blob": log,
            "detail": ready.detail}  # fmt: skip


def went_on(ready: Ready) -> dict[str, Any]:
    """A process answers that nobody is known to have started then: its age is no load time."""
    return {"ok": True, "started": False, "seconds": round(ready.waited, 3), "detail": ready.detail}


def failed(result: NotReady, redact: Callable[[str], str]) -> dict[str, Any]:
    """No answer, with the end of the log and, where it is known, the cause."""
    told: dict[str, Any] = {
        "ok": False,
        "seconds": round(result.seconds, 3),
        "reason": result.reason,
        "message": redact(result.text),
        "log": redact("\n".join(result.log[-LOG_RECORDED:])),
    }
    if result.cause is not None:
        told |= {"cause": result.cause.cause, "line": redact(result.cause.line), "hint": result.cause.hint}
    return told
