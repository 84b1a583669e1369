"""Are the workload's requests as long as those that the engine has served? Shorter ones measure another service."""

from __future__ import annotations

from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.telemetry.engine_page import read_lengths
from changectl.core.workload.lengths import LEAST_REQUESTS, differences

ORDER = 75
CHECK = Check("workload_lengths", "advice", reads_process=True)
_NOTHING = "so nothing was compared"


def check(situation: Situation) -> CheckResult:
    """The lengths of the workload, as nearly as they can be told, against the engine's own histograms."""
    engine, pages, workload = situation.engine, situation.pages, situation.workload
    if engine is None or pages is None:
        return CHECK.unknown(f"the engine's pages were not read, {_NOTHING}")
    if workload is None:
        return CHECK.not_applicable(f"nothing is measured, {_NOTHING}")
    if not engine.metric_table.lengths:
        return CHECK.not_applicable(f"{engine.name} does not tell how long its requests were, {_NOTHING}")
    live = read_lengths(engine.metric_table, pages.get("metrics"), situation.expected_model)
    if not live:
        return CHECK.unknown(f"the lengths of what it has served are not on its metrics page, {_NOTHING}")
    served = max(reading.count or 0 for reading in live.values())
    figure = f"{served:g} requests served since it started"
    if served < LEAST_REQUESTS:
        return CHECK.unknown(f"below {LEAST_REQUESTS} requests say nothing of its users, {_NOTHING}", figure=figure)
    if found := differences(workload, live):
        hint = (
            "what is measured may not be what its users meet: draw a workload from its log, `changectl workload from`"
        )
        return CHECK.failed("; ".join(found), hint, figure)
    return CHECK.passed("its requests are about as long as those that were served", figure)
