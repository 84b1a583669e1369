"""`changectl revert RUN`: take back all kept steps, last first, each proven; a second time changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from changectl.core.errors import ChangectlError, LeftToHost, Refused
from changectl.core.history_events import LOCK_TAKEN_OVER
from changectl.core.lifecycle import INTERRUPTED, UNEXPECTED, Ending, Outcome
from changectl.core.observed import Model, Observed
from changectl.core.placing import Placed
from changectl.core.stopping import drain
from changectl.workflow.attempt import host_run_name
from changectl.workflow.contact import open_target
from changectl.workflow.hold import Hold
from changectl.workflow.interrupts import Interrupted
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.leaving import watching
from changectl.workflow.recorder import Recorder
from changectl.workflow.restore import LEFT, REVERTED, bring_back
from changectl.workflow.revert_order import KeptEdit, Revert, later_run, refuse_unfinished_others, what_to_revert
from changectl.workflow.target import Target
from changectl.workflow.telling import with_teller
from changectl.workflow.tools import Tools
from changectl.workflow.waiting import service_lock


def revert(order: Revert, placed: Sequence[Placed], later: str | None, tools: Tools) -> tuple[str, Ending]:
    """Take a run back under the service's lock; returns the new run's id and how it ended.

    Args:
        order: what to take back.
        placed: the service's instances.
        later: the run that changed the service after this one and was kept, if any.
        tools: the ports.

    Raises:
        Refused: this run or another one on the service was cut off, and that has to be settled first.
    """

    def act(recorder: Recorder, ready: Tools, uncertain: bool) -> Ending:
        return _carried_out(order, placed, later, ready, recorder, uncertain)

    return _recorded(order, placed, tools, act)


def accept_present(order: Revert, placed: Sequence[Placed], tools: Tools) -> tuple[str, Ending]:
    """End a run that was cut off, or whose way back failed, by accepting what stands on its hosts now, unchanged.

    For the day when somebody has put things right by hand: neither the saved bytes nor the run's own are in place.
    """
    return _recorded(order, placed, tools, lambda *given: _accepted(order, placed, *given))


def _recorded(
    order: Revert, placed: Sequence[Placed], tools: Tools, act: Callable[[Recorder, Tools, bool], Ending]
) -> tuple[str, Ending]:
    """A run of its own around an act that ends an earlier run."""
    tools = with_teller(tools)
    run = tools.new_run(order.service)
    recorder = Recorder(tools.journal, tools.secrets, run, 0)
    with tools.interrupts.listening(), service_lock(order.service, run, tools) as dead:
        again = refuse_unfinished_others(order, tools)
        hosts = sorted({one.host.name for one in placed})
        recorder.note("run.opened", {
            "reverts": order.run, "service": order.service, "plan": order.service, "plan_digest": None,
            "reason": order.reason, "ticket": None, "actor": tools.actor, "hosts": hosts,
            "tool_version": tools.version, "steps": [], "plan_text": "",
        })  # fmt: skip
        if dead is not None:
            recorder.note(LOCK_TAKEN_OVER, dead)
        # After a cut even untouched files prove nothing: the service may have been stopped.
        ending = act(recorder, tools, again or not order.finished)
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
        with ExitStack() as doors:
            for hold, edit in holds_of(order, placed, tools, recorder, doors):
                _accept(hold, edit)
    except ChangectlError as error:
        return Ending(Outcome.REFUSED, error.reason, tools.secrets.redactor.text(str(error)))
    text = f"what stands on the hosts was accepted without a judgement by {tools.actor}"
    return Ending(Outcome.KEPT_UNJUDGED, "accepted_present", text)


def _accept(hold: Hold, edit: KeptEdit) -> None:
    hold.lease.take()
    hold.lease.armed = None  # whether an earlier owner armed it only the host knows
    try:
        facts = hold.target.inspect().files.get(edit.path)
        hold.recorder.note("accepted", {"host": edit.instance, "path": edit.path,
                                        "sha256": facts.sha256 if facts else None})  # fmt: skip
        hold.lease.disarm("accepted")
    finally:
        hold.lease.give_back()


def _carried_out(
    order: Revert, placed: Sequence[Placed], later: str | None, tools: Tools, recorder: Recorder, uncertain: bool
) -> Ending:
    try:
        with ExitStack() as doors:
            holds = holds_of(order, placed, tools, recorder, doors)
            doors.enter_context(watching(tools, lambda: [hold.lease for hold, _ in holds]))
            waiting = _changed(holds, later)
            if later:
                _refuse_other_files(holds, later)
            if uncertain:
                waiting += _first_saved(holds, {edit.instance for _, edit in waiting})
            if not waiting:
                return Ending(Outcome.REVERTED, "nothing_to_do", "the saved configuration is in place already")
            with tools.interrupts.ignored():
                return _bring_all_back(waiting)
    except LeftToHost:
        raise  # the run stays open: how it ends is not known yet
    except ChangectlError as error:
        return Ending(Outcome.REFUSED, error.reason, tools.secrets.redactor.text(str(error)))
    except Interrupted as error:
        return Ending(Outcome.ABORTED, INTERRUPTED, str(error))
    except Exception as error:  # noqa: BLE001 - the run gets its end in the record whatever happened
        return Ending(Outcome.ABORTED, UNEXPECTED, tools.secrets.redactor.text(f"{type(error).__name__}: {error}"))


def holds_of(
    order: Revert, placed: Sequence[Placed], tools: Tools, recorder: Recorder, doors: ExitStack
) -> list[tuple[Hold, KeptEdit]]:
    """What is needed to bring every edit back, with open doors. Raises Refused where an instance is gone."""
    targets: dict[str, Target] = {}
    for one in placed:
        if any(edit.instance == one.name for edit in order.edits):
            targets[one.name] = open_target(one, tools)
            doors.callback(targets[one.name].close)
    missing = sorted({edit.instance for edit in order.edits} - set(targets))
    if missing:
        raise Refused(f"the service has no instance {', '.join(missing)} any more", reason="instance_gone")
    return [(_hold(order.run, edit, targets[edit.instance], tools, recorder), edit) for edit in order.edits]


def _hold(run: str, edit: KeptEdit, target: Target, tools: Tools, recorder: Recorder) -> Hold:
    saved = json.loads(tools.records.get_snapshot(edit.copy))
    observed = Observed.read(saved["observed"])
    tools.secrets.learn_observed(observed)
    running = target.inspect().process
    drains = [
        drain(target.engine, process, target.service.drain, None, None) for process in (observed.process, running)
    ]
    folder = host_run_name(run, edit.step)
    return Hold(
        target=target,
        recorder=recorder,
        tools=tools,
        host_run_name=folder,
        lease=HostLease(target, recorder, tools, folder, lease_seconds(target, tools)),
        observed=observed,
        model=Model.read(saved["model"]),
        edit_path=edit.path,
        drain=max((seconds for seconds in drains if seconds is not None), default=None),
        sick=str(saved.get("sick") or ""),
    )


def _changed(holds: Sequence[tuple[Hold, KeptEdit]], later: str | None) -> list[tuple[Hold, KeptEdit]]:
    """The edits, last step first, that are in force; a file that several steps edited goes back through all of them.

    Raises:
        Refused: something else stands there: a later change stands on this one, or somebody edited the file.
    """
    standing: dict[tuple[str, str], str | None] = {}
    changed = []
    for hold, edit in holds:
        place = (edit.instance, edit.path)
        if place not in standing:
            facts = hold.target.inspect().files.get(edit.path)
            standing[place] = facts.sha256 if facts is not None and facts.exists else None
        if standing[place] == edit.after:
            changed.append((hold, edit))
            standing[place] = edit.before
    for _, edit in holds:
        first = next(one for _, one in reversed(holds) if (one.instance, one.path) == (edit.instance, edit.path))
        if standing[edit.instance, edit.path] != first.before:
            who = f"run {later} changed it since: revert that one first" if later else "somebody edited it since"
            text = f"{edit.instance}: {edit.path} is not as this run left it; {who}"
            raise Refused(text, reason="changed_since")
    return changed


def _refuse_other_files(holds: Sequence[tuple[Hold, KeptEdit]], later: str) -> None:
    """With a later change in force, other files that differ are likely its own: what it was judged with has to stay.

    Raises:
        Refused: a file beside the edited ones is not as the run left it.
    """
    edited = {(edit.instance, edit.path) for _, edit in holds}
    seen: set[str] = set()
    for hold, edit in holds:
        if edit.instance in seen:
            continue  # the last step's snapshot is the newest
        seen.add(edit.instance)
        present = hold.target.inspect().files
        moved = [path for path, facts in hold.observed.files.items() if (edit.instance, path) not in edited
                 and (path not in present or present[path].sha256 != facts.sha256)]  # fmt: skip
        if moved:
            text = f"{edit.instance}: {', '.join(moved)} changed since this run; run {later} was kept since"
            raise Refused(f"{text}: revert that one first", reason="changed_since")


def _first_saved(holds: Sequence[tuple[Hold, KeptEdit]], done: set[str]) -> list[tuple[Hold, KeptEdit]]:
    """Of every instance that is not brought back anyway: the oldest snapshot, to be started on and proven."""
    first = {edit.instance: (hold, edit) for hold, edit in holds}  # last step first, so the oldest one wins
    return [pair for instance, pair in first.items() if instance not in done]


def _bring_all_back(waiting: Sequence[tuple[Hold, KeptEdit]]) -> Ending:
    ends = []
    waiting[0][0].lease.take()  # refused here, nothing was done yet
    for hold, _ in waiting:
        try:
            end = bring_back(hold)
        finally:
            hold.lease.give_back()
        if end.outcome == LEFT:
            hold.recorder.insisting().note("contact.lost", {"text": end.detail})
            raise LeftToHost(f"{end.detail}\nWhen it answers again: changectl recover {hold.recorder.run}")
        ends.append(end)
        if end.outcome != REVERTED:
            break
    worst = ends[-1].outcome
    text = "\n".join(end.detail for end in ends)
    return Ending(Outcome(worst), "reverted" if worst == REVERTED else "needs_person", text)


__all__ = ["KeptEdit", "Revert", "accept_present", "exit_code", "later_run", "revert", "what_to_revert"]
