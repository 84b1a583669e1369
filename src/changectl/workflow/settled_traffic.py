"""What this run or an earlier one left out of service goes back, too."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import closing

from changectl.core.declared.placing import Placed
from changectl.core.history.events import UNDRAIN, outcome
from changectl.core.history.out_of_service import left_out
from changectl.workflow.balancer import gate_of
from changectl.workflow.contact import open_target
from changectl.workflow.recorder import Recorder
from changectl.workflow.tools import Tools


def settle(placed: Sequence[Placed], recorder: Recorder, tools: Tools, *, but: Collection[str] = ()) -> str:
    """Put back whatever is out of service because of this run or an earlier one.

    Args:
        placed: the service's instances.
        recorder: the journal of the run that acts.
        tools: the ports.
        but: instances that are dealt with otherwise.

    Returns:
        What balancers put back by themselves while nobody watched, and what is still out, a line each; "": nothing.
    """
    told = []
    for one in placed:
        left = {**tools.memory.out_of_service(one.service.service), **left_out(tools.journal.events(recorder.run))}
        if one.name not in left or one.name in but:
            continue
        try:
            with closing(open_target(one, tools)) as target:
                gate_of(target, recorder, tools, recorder.run).back()
        except Exception as error:  # noqa: BLE001 - how the run ends is decided already
            told.append(f"\n{one.name} is still out of service ({error}); its balancer puts it back once it answers")
    return "".join([*_by_themselves(recorder, tools), *told])


def _by_themselves(recorder: Recorder, tools: Tools) -> list[str]:
    """What was found back in service: an outcome without a deed of ours says how."""
    bodies = [event.body for event in tools.journal.events(recorder.run) if event.kind == outcome(UNDRAIN)]
    return [f"\n{body.get('host')}: {body['how']}" for body in bodies if body.get("how")]
