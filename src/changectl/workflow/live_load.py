"""Watch what users send to an instance before load is sent there, too."""

from __future__ import annotations

import math
from dataclasses import replace

from changectl.core.declared.live_load import IDLE_AFTER, LiveLoad
from changectl.core.declared.traffic_spec import NONE
from changectl.core.telemetry.engine_page import EnginePage, read_page
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.live import engine_page
from changectl.workflow.target import Target
from changectl.workflow.tools import Tools

EVERY = 2.0  # seconds between two looks
ENOUGH, AT_LEAST = 20, 10.0  # requests, and seconds, after which what they send is known


def live_load(target: Target, load: LoadPlan | None, tools: Tools, *, stays: bool = False) -> LiveLoad:
    """What users send to an instance, where load would be sent beside them.

    Args:
        target: the instance.
        load: what would be sent; None: nothing.
        tools: the ports.
        stays: whether it stays in service meanwhile, also where something could take it out.

    Raises:
        HostCallError, ContactLost: as every host call.
    """
    service = target.service
    if load is None:
        return LiveLoad("no load is sent")
    if service.limits.load_on_live:
        return LiveLoad("the service says load_on_live: its users may feel it")
    if service.traffic != NONE and not stays:
        return LiveLoad("it is out of service while load is sent")
    return _watched(target, LiveLoad(levels=load.levels), tools)


def _watched(target: Target, live: LiveLoad, tools: Tools) -> LiveLoad:
    first, begun = _page(target), tools.clock.monotonic()
    looks = [_under_way(first)]
    while live.seconds < IDLE_AFTER and not (live.seconds >= AT_LEAST and (live.requests or 0) >= ENOUGH):
        tools.interrupts.check()
        tools.reporter.waiting(f"watching what users send to {target.name}", elapsed=live.seconds, expected=IDLE_AFTER)
        tools.clock.sleep(EVERY)
        page = _page(target)
        looks.append(_under_way(page))
        known = [look for look in looks if look is not None]
        live = replace(
            live,
            seconds=tools.clock.monotonic() - begun,
            requests=_grown(first, page, "requests_ok", "requests_failed", "requests_aborted"),
            tokens=_grown(first, page, "generated_tokens"),
            under_way=math.fsum(known) / len(known) if len(known) == len(looks) else None,
        )
    return live


def _page(target: Target) -> EnginePage:
    return read_page(target.engine.metric_table, engine_page(target), target.service.model.name)


def _under_way(page: EnginePage) -> float | None:
    running = page.value("running")
    return None if running is None else running + (page.value("waiting") or 0.0)


def _grown(first: EnginePage, last: EnginePage, *names: str) -> float | None:
    """By how much counters grew; those that the engine lacks are left out, one that began anew is not known."""
    pairs = [(first.value(name), last.value(name)) for name in names]
    known = [(before, after) for before, after in pairs if before is not None and after is not None]
    if first.value(names[0]) is None or any(after < before for before, after in known):
        return None
    return math.fsum(after - before for before, after in known)
