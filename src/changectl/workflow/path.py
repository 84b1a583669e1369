"""The proof that a load took the path that it was to take; where that is cut, nothing is sent on another one."""

from __future__ import annotations

import math

from changectl.core.declared.measured_path import ENDPOINT, arrived
from changectl.core.measuring.records import Records
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.not_kept import NotKept
from changectl.workflow.sampling import Sampled
from changectl.workflow.target import Target

PATH_LOST, PATH_UNPROVEN = "path_lost", "path_unproven"
CUT = frozenset({"connect_refused", "connect_timeout", "connect_error"})  # nobody took the request there


def require_path(target: Target, load: LoadPlan, records: Records, seen: Sampled) -> None:
    """Of a load that went through the balancer: it was taken there, and this instance alone answered.

    Raises:
        NotKept: reason `path_lost`: the balancer did not take requests, which is nothing against the change;
            `path_unproven`: others may have answered.
    """
    if load.path == ENDPOINT:
        return
    way = f"{target.name}: the load goes through the balancer ({load.endpoint(target)})"
    if cut := sum(cls in CUT for cls in records.texts("cls")):
        text = f"{way}, and {cut} of {len(records)} requests were not taken there. It is measured on no other path"
        raise NotKept(PATH_LOST, f"{text}; mend that, then apply the plan again")
    tokens = [one.n_out for one in records if one.ok]
    received = None if None in tokens else math.fsum(each or 0 for each in tokens)
    if why := arrived(received, seen.activity.engine.gain("generated_tokens")):
        hint = "`through_balancer` has to lead to this instance alone"
        raise NotKept(PATH_UNPROVEN, f"{way}, and it is not proven that this instance answered: {why}; {hint}")
