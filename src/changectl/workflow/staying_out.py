"""How long a trial keeps one instance out of service: never beyond the service's `max_out` at a time."""

from __future__ import annotations

import math

from changectl.core.judging.judgement import Reason
from changectl.core.trial.order import Letter, Times
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.not_kept import NotKept
from changectl.workflow.traffic import back_in_service, out_of_service

MAX_OUT_TOO_SHORT = "max_out_too_short"
SERVING = 60.0  # seconds that an instance serves between two times out


def time_left(attempt: Attempt) -> float:
    """Seconds for which the instance may still stay out of service; infinite: it is not out, or may be for ever."""
    since, most = attempt.gate.out_since, attempt.target.service.limits.max_out
    if most is None or since is None:
        return math.inf
    return most - (attempt.tools.clock.monotonic() - since)


def too_long_out(attempt: Attempt, running: Letter, times: Times, *, judged: bool) -> Reason | None:
    """Why one more phase and the way back would keep it out for too long; None: they fit, or do so now.

    Where only the time that is used up stands in the way, the instance serves for a while between two pairs: on the
    saved configuration, never on the new one.

    Args:
        attempt: the instance.
        running: the configuration that runs now.
        times: what a start and a phase took at the most.
        judged: whether there is a judgement already, by which the step can end.

    Raises:
        NotKept: they do not fit, and there is none.
        Refused: it cannot be taken out once more.
    """
    most, needed = attempt.target.service.limits.max_out, times.phase + 2 * times.load
    if most is None or needed <= time_left(attempt):
        return None
    if running == "A" and needed <= most:
        _serve(attempt)
        return None
    limit = f"max_out ({format_duration(most, 3)}) of {attempt.target.name}"
    text = f"one more phase and the way back do not fit into {limit}"
    if not judged:
        raise NotKept(MAX_OUT_TOO_SHORT, f"{text}: the change was not tried to its end")
    return Reason("max_out_used", text)


def _serve(attempt: Attempt) -> None:
    tools = attempt.tools
    back_in_service(attempt)
    tools.reporter.note(f"{attempt.target.name}: serves for {SERVING:.0f} s between two pairs")
    until = tools.clock.monotonic() + SERVING
    while tools.clock.monotonic() < until:
        tools.interrupts.check()
        tools.clock.sleep(1.0)
    out_of_service(attempt)
