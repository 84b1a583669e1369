"""Bring the edits of a run back that are in force, last step first; for `revert`, and for one that was cut off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from changectl.core.declared.placing import Placed
from changectl.core.errors import LeftToHost, Refused
from changectl.core.lease import run_folder
from changectl.core.lifecycle import Ending, Outcome
from changectl.core.observed import Model, Observed
from changectl.core.stopping import drain
from changectl.workflow.balancer import gate_of
from changectl.workflow.contact import open_target
from changectl.workflow.hold import Hold
from changectl.workflow.lease import HostLease, lease_seconds, right_of
from changectl.workflow.leaving import watching
from changectl.workflow.others_out import once_called, out_already
from changectl.workflow.recorder import Recorder
from changectl.workflow.restore import LEFT, REVERTED, UNVERIFIED, Restored, bring_back
from changectl.workflow.revert_order import KeptEdit, Revert
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools


def take_back(
    order: Revert, placed: Sequence[Placed], later: str | None, tools: Tools, recorder: Recorder, *, uncertain: bool
) -> Ending:
    """Bring back what is in force of a run's edits, last step first.

    Args:
        order: what to take back.
        placed: the service's instances.
        later: a later run that was kept, if any.
        tools: the ports.
        recorder: the journal of the run that acts.
        uncertain: nobody knows how far an earlier way back came: every instance is started anew and proven.

    Raises:
        LeftToHost: a host does not answer; its dead-man restores it.
        ChangectlError: it is refused, or a host does not answer; nothing was done.
    """
    with ExitStack() as doors:
        holds = holds_of(order, placed, tools, recorder, doors)
        doors.enter_context(watching(tools, lambda: [lease for hold, _ in holds for lease in hold.leases]))
        waiting = _changed(holds, later)
        if later:
            _refuse_other_files(holds, later)
        if uncertain:
            waiting += _first_saved(holds, {edit.instance for _, edit in waiting})
            _stand_down_others(holds, waiting)
        if not waiting:
            return Ending(Outcome.REVERTED, "nothing_to_do", "the saved configuration is in place already")
        out, serving = out_already(order, waiting, placed, tools, recorder, uncertain=uncertain)
        # Who serves goes out last.
        waiting.sort(key=lambda pair: (pair[1].instance not in out, pair[1].instance in serving))
        with tools.interrupts.ignored():
            return _bring_all_back(waiting, out)


def _stand_down_others(holds: Sequence[tuple[Hold, KeptEdit]], waiting: Sequence[tuple[Hold, KeptEdit]]) -> None:
    """A step whose file is back already may still be armed, and would keep its host from the step before it."""
    chosen = {id(hold) for hold, _ in waiting}
    for hold, _ in holds:
        if id(hold) not in chosen and hold.target.ask("standing", {"run": hold.host_run_name}).get("armed"):
            hold.lease.take()
            hold.stand_down()
            hold.lease.give_back()


def holds_of(
    order: Revert, placed: Sequence[Placed], tools: Tools, recorder: Recorder, doors: ExitStack
) -> list[tuple[Hold, KeptEdit]]:
    """What is needed to bring every edit back, with open doors. Raises Refused where an instance is gone."""
    targets = targets_of(order, placed, tools, doors)
    holds: list[tuple[Hold, KeptEdit]] = []
    for edit in order.edits:
        leases = [hold.lease for hold, _ in holds]
        holds.append((_hold(order.run, edit, targets[edit.instance], tools, recorder, leases), edit))
    return holds


def targets_of(order: Revert, placed: Sequence[Placed], tools: Tools, doors: ExitStack) -> dict[str, Target]:
    """The instances of all edits by name, with open doors. Raises Refused where one is gone."""
    targets: dict[str, Target] = {}
    for one in placed:
        edits = [edit for edit in order.edits if edit.instance == one.name]
        if edits:
            targets[one.name] = open_target(_as_saved(one, edits[0]), tools)
            doors.callback(targets[one.name].close)
    missing = sorted({edit.instance for edit in order.edits} - set(targets))
    if missing:
        text = f"the service has no instance {', '.join(missing)} any more{once_called(missing, placed)}"
        raise Refused(text, reason="instance_gone")
    return targets


def _as_saved(one: Placed, edit: KeptEdit) -> Placed:
    """The instance with the state folder that the run used, whatever the service file names by now."""
    if edit.state_dir is None:
        return one
    return replace(one, service=one.service.model_copy(update={"state_dir": edit.state_dir}))


def _hold(
    run: str, edit: KeptEdit, target: Target, tools: Tools, recorder: Recorder, leases: Sequence[HostLease]
) -> Hold:
    saved = json.loads(tools.records.get_snapshot(edit.copy))
    observed = Observed.read(saved["observed"])
    tools.secrets.learn_observed(observed)
    running = target.inspect().process
    drains = [
        drain(target.engine, process, target.service.drain, None, None) for process in (observed.process, running)
    ]
    folder = edit.folder or run_folder(run, edit.step)
    right = right_of(target, folder, leases)
    return Hold(
        gate=gate_of(target, recorder, tools, run_folder(recorder.run, recorder.step)),
        target=target,
        recorder=recorder,
        tools=tools,
        host_run_name=folder,
        lease=HostLease(target, recorder, tools, folder, lease_seconds(target, tools), right, armed=None),
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


def _bring_all_back(waiting: Sequence[tuple[Hold, KeptEdit]], out: set[str]) -> Ending:
    """One after the other; `out`: those that are out of service, and grow by who could not be put back."""
    ends: list[Restored] = []
    left = [edit.instance for _, edit in waiting]
    waiting[0][0].lease.take()  # refused here, nothing was done yet
    for hold, edit in waiting:
        if ends and out - {edit.instance}:
            break  # never are two of them out at a time
        try:
            end = bring_back(hold)
        finally:
            hold.lease.give_back()
        if end.outcome == LEFT:
            hold.recorder.insisting().note("contact.lost", {"text": end.detail})
            raise LeftToHost(f"{end.detail}\nWhen it answers again: changectl recover {hold.recorder.run}")
        ends.append(end)
        left.remove(edit.instance)
        out = out - {edit.instance} | ({edit.instance} if end.still_out else set())
        if end.outcome != REVERTED:
            break
    worst = UNVERIFIED if left and ends[-1].outcome == REVERTED else ends[-1].outcome
    text = "\n".join([*(end.detail for end in ends), *_not_begun(waiting[len(ends) - 1], left)])
    return Ending(Outcome(worst), "reverted" if worst == REVERTED else "needs_person", text)


def _not_begun(last: tuple[Hold, KeptEdit], left: Sequence[str]) -> list[str]:
    hold, edit = last
    others = [name for name in dict.fromkeys(left) if name != edit.instance]
    if not others:
        return []
    again = f"changectl revert {hold.host_run_name.rpartition('.')[0]}"
    text = f"{', '.join(others)}: not taken back, so that no second instance is out while {edit.instance} may be"
    return [f"{text}. Once {edit.instance} is in service: {again}"]
