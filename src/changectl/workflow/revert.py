"""`changectl revert RUN`: take back all kept steps, last first, each proven; a second time changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack

from changectl.core.declared.placing import Placed
from changectl.core.errors import ChangectlError, LeftToHost, Refused
from changectl.core.history.events import LOCK_TAKEN_OVER
from changectl.core.lease import run_folder
from changectl.core.lifecycle import INTERRUPTED, UNEXPECTED, Ending, Outcome
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.recorder import Recorder
from changectl.workflow.revert_order import KeptEdit, Revert, later_run, refuse_unfinished_others, what_to_revert
from changectl.workflow.taking_back import take_back, targets_of
from changectl.workflow.target import Target
from changectl.workflow.telling import with_teller
from changectl.workflow.tools import Tools
from changectl.workflow.waiting import service_lock

Reread = Callable[[], tuple[Revert, str | None]]  # what is to be taken back, and the later run, as the record says now


def revert(
    order: Revert, placed: Sequence[Placed], later: str | None, tools: Tools, reread: Reread | None = None
) -> tuple[str, Ending]:
    """Take a run back under the service's lock; returns the new run's id and how it ended.

    Args:
        order: what to take back.
        placed: the service's instances.
        later: the run that changed the service after this one and was kept, if any.
        tools: the ports.
        reread: reads both anew once the lock is held: somebody may have changed the service since.

    Raises:
        Refused: this run or another one on the service was cut off, and that has to be settled first.
    """

    def act(now: Revert, then: str | None, recorder: Recorder, ready: Tools, uncertain: bool) -> Ending:
        return _carried_out(now, placed, then, ready, recorder, uncertain)

    return _recorded(order, placed, tools, act, reread or (lambda: (order, later)))


def accept_present(
    order: Revert, placed: Sequence[Placed], tools: Tools, reread: Reread | None = None
) -> tuple[str, Ending]:
    """End a run that was cut off, or whose way back failed, by accepting what stands on its hosts now, unchanged.

    For the day when somebody has put things right by hand: neither the saved bytes nor the run's own are in place.
    """

    def act(now: Revert, _: str | None, recorder: Recorder, ready: Tools, uncertain: bool) -> Ending:
        return _accepted(now, placed, recorder, ready, uncertain)

    return _recorded(order, placed, tools, act, reread or (lambda: (order, None)), accepts=True)


def _recorded(
    order: Revert,
    placed: Sequence[Placed],
    tools: Tools,
    act: Callable[[Revert, str | None, Recorder, Tools, bool], Ending],
    reread: Reread,
    *,
    accepts: bool = False,
) -> tuple[str, Ending]:
    """A run of its own around an act that ends an earlier run."""
    tools = with_teller(tools)
    run = tools.new_run(order.service)
    recorder = Recorder(tools.journal, tools.secrets, run, 0)
    with tools.interrupts.listening(), service_lock(order.service, run, tools) as dead:
        order, later = reread()
        again = refuse_unfinished_others(order, tools)
        hosts = sorted({one.host.name for one in placed})
        recorder.note("run.opened", {
            "reverts": order.run, "service": order.service, "plan": order.service, "plan_digest": None,
            "reason": order.reason, "ticket": None, "actor": tools.actor, "hosts": hosts,
            "tool_version": tools.version, "steps": [], "plan_text": "", "accepts": accepts,
        })  # fmt: skip
        if dead is not None:
            recorder.note(LOCK_TAKEN_OVER, dead)
        # After a cut even untouched files prove nothing: the service may have been stopped.
        ending = act(order, later, recorder, tools, again or not order.finished)
        recorder.note("revert.outcome", {"reverts": order.run, "outcome": ending.outcome.value,
                                         "reason": ending.reason, "text": ending.text})  # fmt: skip
        recorder.note("run.closed", {"exit_code": exit_code(ending), "outcome": ending.outcome.value,
                                     "reason": ending.reason})  # fmt: skip
    return run, ending


def exit_code(ending: Ending) -> int:
    """`revert` ends with 0 (back, or nothing to do), 3 (refused) or 6 (a person is needed)."""
    return 0 if ending.outcome is Outcome.REVERTED else ending.exit_code


def _accepted(order: Revert, placed: Sequence[Placed], recorder: Recorder, tools: Tools, uncertain: bool) -> Ending:
    if not uncertain:
        text = f"run {order.run} has its end already; this is for one that was cut off, or could not be proven"
        return Ending(Outcome.REFUSED, "run_finished", text)
    try:
        return accept(order, placed, recorder, tools)
    except ChangectlError as error:
        return Ending(Outcome.REFUSED, error.reason, tools.secrets.redactor.text(str(error)))


def accept(order: Revert, placed: Sequence[Placed], recorder: Recorder, tools: Tools) -> Ending:
    """Have every host record that a person accepted what stands there; no copy of what was saved is needed for it.

    Every host is looked at first, so that one which does not answer leaves all of them as they were.

    Raises:
        ChangectlError: a host does not answer, or refuses; the text names the hosts that had accepted by then, if any.
    """
    with ExitStack() as doors:
        targets = targets_of(order, placed, tools, doors)
        for edit in order.edits:
            targets[edit.instance].inspect()
        accepted: list[str] = []
        for edit in order.edits:
            try:
                _accept(order.run, edit, targets[edit.instance], recorder, tools)
            except ChangectlError as error:
                raise _by_a_part(error, edit.instance, accepted) from error
            accepted.append(edit.instance)
    text = f"what stands on the hosts was accepted without a judgement by {tools.actor}"
    return Ending(Outcome.KEPT_UNJUDGED, "accepted_present", text)


def _accept(run: str, edit: KeptEdit, target: Target, recorder: Recorder, tools: Tools) -> None:
    seconds = lease_seconds(target, tools)
    # Whether an earlier owner armed it only the host knows.
    lease = HostLease(target, recorder, tools, edit.folder or run_folder(run, edit.step), seconds, armed=None)
    lease.take()
    lease.armed = None
    try:
        facts = target.inspect().files.get(edit.path)
        recorder.note("accepted", {"host": edit.instance, "path": edit.path,
                                   "sha256": facts.sha256 if facts else None})  # fmt: skip
        lease.disarm("accepted")
    finally:
        lease.give_back()


def _by_a_part(error: ChangectlError, failed: str, accepted: Sequence[str]) -> Refused:
    """Some hosts may have it on record and another one has not: nobody may take that for all, or for none."""
    done = f"accepted on {', '.join(dict.fromkeys(accepted))}" if accepted else "accepted nowhere"
    text = f"{done}, and not on {failed}: {error}. The run is not settled: once that is mended, the same command again"
    return Refused(text, reason=error.reason)


def _carried_out(
    order: Revert, placed: Sequence[Placed], later: str | None, tools: Tools, recorder: Recorder, uncertain: bool
) -> Ending:
    try:
        return take_back(order, placed, later, tools, recorder, uncertain=uncertain)
    except LeftToHost:
        raise  # the run stays open: how it ends is not known yet
    except ChangectlError as error:
        return Ending(Outcome.REFUSED, error.reason, tools.secrets.redactor.text(str(error)))
    except Interrupted as error:
        return Ending(Outcome.ABORTED, INTERRUPTED, str(error))
    except Exception as error:  # noqa: BLE001 - the run gets its end in the record whatever happened
        return Ending(Outcome.ABORTED, UNEXPECTED, tools.secrets.redactor.text(f"{type(error).__name__}: {error}"))


__all__ = ["KeptEdit", "Revert", "accept_present", "exit_code", "later_run", "revert", "what_to_revert"]
