"""`changectl recover`: settle a run that was cut off, by asking its hosts; never from memory alone.

Every host says what was decided there, or what its dead-man did. Where it is kept it stays, what was not touched is
left alone, and in all other cases the saved configuration is brought back and proven.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import replace

from changectl.core.declared.placing import Placed
from changectl.core.errors import ChangectlError, HostCallError, PersonNeeded
from changectl.core.history.events import LOCK_TAKEN_OVER, RUN_CLOSED, STEP_CLOSED
from changectl.core.history.places import host_folders
from changectl.core.lease import run_folder
from changectl.core.lifecycle import Ending, Found, Move, Outcome, found_on, next_move
from changectl.workflow.contact import open_target
from changectl.workflow.half_done import RECOVERED, Ends, HalfDone
from changectl.workflow.hold import Hold
from changectl.workflow.lease import HostLease, lease_seconds
from changectl.workflow.leaving import watching
from changectl.workflow.open_run import OpenRun, open_run
from changectl.workflow.recorder import Recorder
from changectl.workflow.revert import accept
from changectl.workflow.revert import exit_code as revert_exit_code
from changectl.workflow.revert_order import KeptEdit, Revert
from changectl.workflow.settled_traffic import settle
from changectl.workflow.taking_back import holds_of, take_back
from changectl.workflow.telling import with_teller
from changectl.workflow.tools import Tools
from changectl.workflow.waiting import service_lock

UNREADABLE = ("key_", "snapshot_")  # how the reasons begin why the saved configuration cannot be read


def recover(order: OpenRun, placed: Sequence[Placed], tools: Tools, *, go_on: bool = False) -> Ending:
    """Give a run its end.

    Args:
        order: the run.
        placed: the service's instances.
        tools: the ports.
        go_on: keep a change that was judged good wherever it stands before the run was cut off, and still runs and
            answers.

    Raises:
        Refused: going on is not safe; says why. The hosts' dead-men stay armed.
        Locked: it still runs, or another run has a host.
        ContactLost: a host does not answer; nothing is decided without it.
        PersonNeeded: a host cannot tell, or refuses, what was decided there; or the copy of what was saved cannot be
            read (its reason says why).
    """
    tools = with_teller(tools)
    recorder = Recorder(tools.journal, tools.secrets, order.run, order.step)
    with tools.interrupts.listening(), service_lock(order.service, order.run, tools) as dead:
        order = _as_it_is_now(order, tools)
        recorder.note("recover.started", {"actor": tools.actor})
        recorder.note("recover.orphans", {"ended": tools.end_orphans(order.run)})
        if dead is not None:
            recorder.note(LOCK_TAKEN_OVER, dead)
        try:
            with ExitStack() as doors:
                ending, ends = _settled(order, placed, recorder, tools, doors, go_on=go_on)
            ending = replace(ending, text=ending.text + settle(placed, recorder, tools))
        except HostCallError as error:
            text = f"{error}\nThe run stays open. Mend that on the host, then: changectl recover {order.run}"
            again = f"changectl revert {order.folders_of} --accept-present --reason TEXT"
            raise PersonNeeded(f"{text}\nOr accept what stands there: {again}") from error
        except ChangectlError as error:
            if not error.reason.startswith(UNREADABLE):
                raise
            raise PersonNeeded(_without_copy(order, error, tools), reason=error.reason) from error
        _close(order, ending, ends, recorder)
    return ending


def _without_copy(order: OpenRun, error: ChangectlError, tools: Tools) -> str:
    """What a person can do where the controller cannot read its copy: the hosts have their own."""
    runs = [order.run] if order.reverts is None else [order.reverts, order.run]
    folders = host_folders([event for run in runs for event in tools.journal.events(run)])
    by_hand = [f"By hand, on {folder.host}: {folder.by_hand}" for folder in folders if folder.by_hand]
    again = f"The run stays open. Mend that, then: changectl recover {order.run}"
    accepted = f"Once it is put right by hand: changectl revert {order.folders_of} --accept-present --reason TEXT"
    return "\n".join([str(error), again, *by_hand, accepted])


def _as_it_is_now(order: OpenRun, tools: Tools) -> OpenRun:
    """Read again under the lock: it may have got its end meanwhile. Raises Refused."""
    reverted = tools.journal.events(order.reverts) if order.reverts else ()
    return open_run(tools.journal.events(order.run), reverted)


def exit_code(ending: Ending) -> int:
    """`recover` ends with 0 (settled: kept, restored, or nothing had been changed) or 6 (a person is needed)."""
    person = ending.outcome in (Outcome.REVERT_FAILED, Outcome.REVERT_UNVERIFIED)
    return revert_exit_code(ending) if person else 0


def _settled(
    order: OpenRun, placed: Sequence[Placed], recorder: Recorder, tools: Tools, doors: ExitStack, *, go_on: bool
) -> tuple[Ending, Ends]:
    """How the run ends, and what became of each instance, where it was no revert."""
    if order.closed is not None or not order.edits:
        _free(order, placed, recorder, tools)
    if order.closed is not None:
        return _as_closed(order, order.closed), {}
    if not order.edits:
        return Ending(Outcome.ABORTED, RECOVERED, "it was cut off before anything was saved or changed"), {}
    revert = Revert(order.folders_of, order.service, RECOVERED, order.edits, finished=False)
    if order.accepts:
        return accept(revert, placed, recorder, tools), {}
    if order.reverts:  # whoever wanted it back wants it still
        return replace(take_back(revert, placed, None, tools, recorder, uncertain=True), reason=RECOVERED), {}
    holds = holds_of(revert, placed, tools, recorder, doors)
    doors.enter_context(watching(tools, lambda: [lease for hold, _ in holds for lease in hold.leases]))
    found = {}
    for hold, edit in holds:
        doors.callback(hold.lease.give_back)
        found[edit.instance] = _ask(order, hold, edit, recorder)
    move = next_move(list(found.values()), all_or_none=order.all_or_none)
    recorder.note("recover.found", {"hosts": {f"{name}/{order.step}": one for name, one in found.items()},
                                    "move": move})  # fmt: skip
    held = {hold.target.address.name for hold, _ in holds}  # the holds give these free
    _free(order, [one for one in placed if one.host.name not in held], recorder, tools)
    half = HalfDone(order, holds, found, tools)
    match move:
        case Move.ABORT:
            return half.ended(Ending(Outcome.ABORTED, RECOVERED, "it was cut off before anything was changed"))
        case Move.KEEP:
            return half.kept()
        case _ if go_on:
            return half.kept_on()
        case _:
            return half.restored()


def _free(order: OpenRun, placed: Sequence[Placed], recorder: Recorder, tools: Tools) -> None:
    """Give the hosts free that the run had taken and left as they were; one that is not reached frees itself."""
    for one in placed:
        if one.name not in order.leased:
            continue
        with suppress(ChangectlError), closing(open_target(one, tools)) as target:
            folder = run_folder(order.run, order.step)
            lease = HostLease(target, recorder, tools, folder, lease_seconds(target, tools))
            lease.take()
            lease.give_back()


def _as_closed(order: OpenRun, closed: Ending) -> Ending:
    """Its last step has its end on record already; only the run has none."""
    if closed.outcome.in_force and order.step < order.planned:
        return Ending(Outcome.ABORTED, RECOVERED, f"step {order.step} was kept, and the next one was never begun")
    return closed


def _ask(order: OpenRun, hold: Hold, edit: KeptEdit, recorder: Recorder) -> Found:
    """Shut out whatever the dead run may still do there, then ask what was decided."""
    hold.lease.take()
    standing = hold.target.ask("standing", {"run": hold.host_run_name})
    found = found_on(standing, begun=edit.instance in order.begun)
    # Armed is not watched: a sleeper that is gone is started again by the next play that arms.
    hold.lease.armed = (True if standing.get("keeper_running") else None) if standing.get("armed") else False
    facts = {name: standing.get(name) for name in ("armed", "disarmed", "fired")}
    recorder.note("recover.host", {"host": edit.instance, "step": edit.step, "found": found, **facts})
    return found


def _close(order: OpenRun, ending: Ending, ends: Ends, recorder: Recorder) -> None:
    body = {"outcome": ending.outcome.value, "reason": ending.reason, "text": ending.text}
    if order.reverts:
        recorder.note("revert.outcome", {"reverts": order.reverts, **body})
    elif order.step and order.closed is None:
        whole = {**body, "verdict": order.verdict, "outage_seconds": None, "instances": dict(ends)}
        recorder.note(STEP_CLOSED, whole)
    code = exit_code(ending)
    recorder.note(RUN_CLOSED, {"exit_code": code, "outcome": ending.outcome.value, "reason": ending.reason})
