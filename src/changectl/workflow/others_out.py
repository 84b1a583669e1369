"""Who is out of service before a change is taken back: whatever serves instead of them is not stopped, too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from changectl.core.declared.placing import Placed
from changectl.core.errors import Refused
from changectl.workflow.hold import Hold
from changectl.workflow.recorder import Recorder
from changectl.workflow.revert_order import KeptEdit, Revert
from changectl.workflow.settled_traffic import settle
from changectl.workflow.tools import Tools

Waiting = Sequence[tuple[Hold, KeptEdit]]


def out_already(
    order: Revert, waiting: Waiting, placed: Sequence[Placed], tools: Tools, recorder: Recorder, *, uncertain: bool
) -> tuple[set[str], set[str]]:
    """Who was left out of service and is not in again by now, and who of those that wait serves meanwhile.

    Args:
        order: what to take back.
        waiting: what is to be brought back.
        placed: the service's instances.
        tools: the ports.
        recorder: the journal of the run that acts.
        uncertain: as of `take_back`: one whose way back has begun has to be brought back, whoever else is out.

    Raises:
        Refused: one is out that is not to be brought back itself: whatever serves instead of it stays.
    """
    own = {edit.instance for _, edit in waiting}
    told = settle(placed, recorder, tools, but=own)
    out = set(tools.memory.out_of_service(order.service))
    others = sorted(out - own)
    if not others:
        return out, set()
    serving = {name for name in own - out if _not_begun(order, name, waiting)} if uncertain else own
    if serving == own:
        names, first = ", ".join(others), waiting[0][1].instance
        text = f"{names} is out of service, so {first} was not taken out, too{told}{once_called(others, placed)}"
        todo = f"See `changectl status {order.service}`; mend that, then the same command again"
        raise Refused(f"{text}\n{todo}", reason="others_out")
    return out, serving


def _not_begun(order: Revert, instance: str, waiting: Waiting) -> bool:
    """Whether no way back of an instance has begun: what goes first is in force, nothing is armed, and it answers."""
    hold = next(hold for hold, edit in waiting if edit.instance == instance)
    newest = next(edit for edit in order.edits if edit.instance == instance)
    target = hold.target
    facts = target.inspect().files.get(newest.path)
    if facts is None or facts.sha256 != newest.after:
        return False
    folders = {one.host_run_name for one, edit in waiting if edit.instance == instance}
    if any(target.ask("standing", {"run": folder}).get("armed") for folder in sorted(folders)):
        return False
    return target.engine.readiness(target.pages(), target.service.model.name).state == "ready"


def once_called(names: Collection[str], placed: Sequence[Placed]) -> str:
    """What to write where instances of the record seem to have another name by now, a line each; "": none does.

    One that shares its host is called HOST:PORT, and HOST where it is the only one there.
    """
    lines = []
    for name in sorted(set(names) - {one.name for one in placed}):
        found = [one.name for one in placed if name in (one.host.name, f"{one.host.name}:{one.port}")]
        if found:
            which = " or ".join(found)
            lines.append(f"\nIf it is what is called {which} now: write `name: {name}` for it in the service file")
    return "".join(lines)
