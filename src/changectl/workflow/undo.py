"""The end of a step that is not kept everywhere: what was begun goes back, what is kept stays or goes back too."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.errors import LeftToHost
from changectl.core.lifecycle import INTERRUPTED, NOTHING_WRITTEN, UNEXPECTED, Ending, Outcome
from changectl.core.rollout import mix
from changectl.workflow.attempt import Attempt
from changectl.workflow.restore import (
    FAILED,
    LEFT,
    REVERTED,
    UNVERIFIED,
    Restored,
    bring_back,
    collect_evidence,
    left_alone,
)
from changectl.workflow.step_run import StepRun
from changectl.workflow.traffic import back_in_service


def undo(run: StepRun, reason: str, text: str) -> Ending:
    """Bring back every touched instance that is not kept, last first; further signals wait until that is done.

    Under `on_partial: revert_all` the kept ones go back with it.

    Raises:
        LeftToHost: a host with an armed dead-man does not answer; the run stays open until `recover`.
    """
    text = run.tools.secrets.redactor.text(text)
    kept = run.kept
    begun = [attempt for attempt in run.touched if attempt not in kept and not _is_back(run, attempt)]
    if not begun and not kept:
        _let_in(run)
        aborted = reason in (INTERRUPTED, UNEXPECTED)
        return Ending(Outcome.ABORTED if aborted else Outcome.REFUSED, reason, text)
    run.tools.reporter.note(f"not kept ({reason}): {text}")
    with run.tools.interrupts.ignored():
        ends = [_back(run, attempt, text) for attempt in begun if not _alone(run, attempt, reason)]
        if run.all_back:
            _take_back_kept(run, kept, ends, text)
    _leave(run, ends)
    _let_in(run)
    staying = run.kept
    failed = [end for end in ends if end.outcome != REVERTED]
    if failed:
        worst = FAILED if any(end.outcome == FAILED for end in failed) else failed[0].outcome
        details = run.tools.secrets.redactor.text("\n".join(end.detail for end in failed))
        return Ending(Outcome(worst), reason, _with_mix(run, f"{text}\n{details}", staying))
    if staying:
        text += run.tools.secrets.redactor.text("".join(end.still_out for end in ends))
        return Ending(Outcome.KEPT_PARTLY, reason, _with_mix(run, text, staying))
    if reason in NOTHING_WRITTEN and not ends:
        return Ending(Outcome.REFUSED, reason, text)
    if run.acceptance.incident is not None:  # whether it answers now is not a matter of course
        text = run.tools.secrets.redactor.text("\n".join([text, *(end.detail for end in ends)]))
    else:
        text += run.tools.secrets.redactor.text("".join(end.still_out for end in ends))
    return Ending(Outcome.REVERTED, reason, text)


def handed_back(run: StepRun, attempt: Attempt) -> Restored:
    """The end on an instance on which nothing was changed: the saved configuration is proven there, as after any trial.

    Raises:
        LeftToHost: it does not answer; its dead-man sees to it.
    """
    attempt.insist()
    with run.tools.interrupts.ignored():
        end = bring_back(attempt)
    if end.outcome != LEFT:
        run.ends[attempt.target.name] = end.outcome
    _leave(run, [end])
    run.tools.reporter.note(end.detail)
    return end


def _is_back(run: StepRun, attempt: Attempt) -> bool:
    return run.ends.get(attempt.target.name) == REVERTED


def _take_back_kept(run: StepRun, kept: Sequence[Attempt], ends: list[Restored], text: str) -> None:
    """Bring back the kept ones as well, last first, as long as no other instance is out: a good one serves on then."""
    for attempt in reversed(kept):
        if any(end.outcome != REVERTED or end.still_out for end in ends):
            run.tools.reporter.note(f"{attempt.target.name} keeps the change: another instance is not in service again")
        else:
            ends.append(_back(run, attempt, text))


def _let_in(run: StepRun) -> None:
    """What was taken out of service and needed no way back serves again; what is still out is told, and no more."""
    with run.tools.interrupts.ignored():
        for attempt in run.attempts:
            if attempt.gate.out_since is None or run.ends.get(attempt.target.name) in (FAILED, UNVERIFIED):
                continue
            try:
                back_in_service(attempt)
            except Exception as error:  # noqa: BLE001 - how the step ended is decided; the balancer's lease sees to it
                run.tools.reporter.note(f"{attempt.target.name} is still out of service: {error}")


def _with_mix(run: StepRun, text: str, staying: Sequence[Attempt]) -> str:
    return f"{text}\n{mix(run.instances)}" if staying else text


def _leave(run: StepRun, ends: Sequence[Restored]) -> None:
    if any(end.outcome == LEFT for end in ends):
        text = run.tools.secrets.redactor.text("\n".join(end.detail for end in ends if end.outcome != REVERTED))
        run.recorder.insisting().note("contact.lost", {"text": text})
        raise LeftToHost(f"{text}\nWhen they answer again: changectl recover {run.recorder.run}")


def _alone(run: StepRun, attempt: Attempt, reason: str) -> bool:
    """Whether the host refused to write on this instance, and it is proven to run untouched."""
    attempt.insist()
    if not attempt.refused or not left_alone(attempt, edited_by_other=reason == "changed_by_other"):
        return False
    run.tools.reporter.note(f"{attempt.target.name}: nothing was written, and the service runs as before")
    attempt.stand_down()
    return True


def _back(run: StepRun, attempt: Attempt, text: str) -> Restored:
    """Bring one instance back; what failed there is kept as evidence first."""
    attempt.insist()
    collect_evidence(attempt, text)
    end = bring_back(attempt)
    if end.outcome != LEFT:
        run.ends[attempt.target.name] = end.outcome
    run.tools.reporter.note(end.detail)
    return end
