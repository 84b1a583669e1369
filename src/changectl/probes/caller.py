"""The host that sends the load can do so: it is reachable, runs the load generator, and gets an answer."""

from __future__ import annotations

from changectl.core.measuring.records import EMPTY, OK
from changectl.core.precheck import Check, CheckResult, Situation
from changectl.core.units import format_duration

ORDER = 19
CHECK = Check("caller", "required", reads_process=True)


def check(situation: Situation) -> CheckResult:
    """The load generator itself sends one request from there; the instance's own host is looked at anyhow."""
    caller = situation.caller
    if caller is None:
        return CHECK.unknown("where the load comes from is not known")
    if not caller.name:
        return CHECK.not_applicable("no load is sent")
    if caller.own:
        return CHECK.not_applicable("the load comes from the instance's own host", figure=caller.name)
    if caller.trouble:
        return CHECK.failed(caller.trouble, f"see `changectl doctor {caller.name}`, or name another `caller`")
    if situation.observed is not None and situation.observed.process is None:
        return CHECK.unknown("the service does not run, so nothing was asked from there")
    if caller.failure:
        return CHECK.failed(caller.failure, f"the load generator has to run on {caller.name}", figure=caller.name)
    to = caller.endpoint or situation.endpoint
    tried, place = caller.tried, f"{caller.name} ({caller.address or 'address not known'})"
    if tried is None:
        return CHECK.unknown("one request was sent from there, and what came of it is not known", figure=place)
    if tried.cls not in (OK, EMPTY):
        said = f"{tried.cls}: {tried.error}" if tried.error else tried.cls
        hint = f"{to} has to be one that this host reaches, and open to it: see `endpoint` and `through_balancer`"
        return CHECK.failed(f"{to} gives {caller.name} no answer: {said}", hint, figure=place)
    seconds = tried.duration("e2e_user")
    took = "" if seconds is None else f" in {format_duration(seconds, 2)}"
    return CHECK.passed(f"{to} answered from there{took} (Python {caller.python})", figure=place)
