"""When a run that was cut off is settled, what it left out of service goes back, too."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from changectl.core.out_of_service import left_out
from changectl.core.placing import Placed
from changectl.workflow.balancer import gate_of
from changectl.workflow.contact import open_target
from changectl.workflow.recorder import Recorder
from changectl.workflow.tools import Tools


def settle(placed: Sequence[Placed], recorder: Recorder, tools: Tools) -> str:
    """Put back whatever a run that was cut off left out of service; what is still out then is told, "" is nothing."""
    told = []
    for one in placed:
        if one.name not in left_out(tools.journal.events(recorder.run)):
            continue
        try:
            with closing(open_target(one, tools)) as target:
                gate_of(target, recorder, tools, recorder.run).back()
        except Exception as error:  # noqa: BLE001 - how the run ends is decided already
            told.append(f"\n{one.name} is still out of service ({error}); its balancer puts it back once it answers")
    return "".join(told)
