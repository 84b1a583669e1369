"""Which load levels a service really gets, and what of a plan could therefore never be judged.

An instance that may be serving others gets the level called `low` and nothing else, unless its service allows more.
What a plan says about any other level would be promised and never seen, so it is refused while the plan is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from changectl.core.errors import Problem
from changectl.core.metrics import Guard, MetricRef
from changectl.core.plan import Plan
from changectl.core.service import Service
from changectl.core.source import Path, Source
from changectl.core.statistics import MINIMUM
from changectl.core.units import LevelLoad

LOW = "low"  # the level that a serving instance may always get


def measured(plan: Plan, service: Service) -> Mapping[str, LevelLoad]:
    """The levels that will be measured, in their order; empty: the service allows none of those that there are."""
    levels = plan.levels(service.conditions.levels)
    if service.limits.load_on_live:
        return levels
    return {name: load for name, load in levels.items() if name == LOW}


def left_out(plan: Plan, service: Service) -> tuple[str, ...]:
    """The names of the levels that are declared and will not be measured."""
    own = measured(plan, service)
    return tuple(name for name in plan.levels(service.conditions.levels) if name not in own)


def requests(plan: Plan, service: Service) -> int | None:
    """How many requests each level gets in each phase; None: a level lasts for a time."""
    own = plan.conditions.requests
    return own if own is not None else service.conditions.requests


def check(plan: Plan, source: Source, service: Service) -> list[Problem]:
    """What of a plan could never be judged: levels that are not measured, percentiles of too few requests.

    Args:
        plan: the plan.
        source: the file it was read from, for the places.
        service: its service.
    """
    if not measured(plan, service):
        return [_no_low(plan, source, service)]
    return [*_levels(plan, source, service), *_percentiles(plan, source, service)]


def _no_low(plan: Plan, source: Source, service: Service) -> Problem:
    named_in = source if plan.conditions.levels else service.source
    message = f"none of these levels is called `{LOW}`, the only one that an instance gets that may be in use"
    return named_in.problem(("conditions", "levels"), message, f"add `{LOW}: 1 stream`, or {_allow(service)}")


def _levels(plan: Plan, source: Source, service: Service) -> Iterator[Problem]:
    own = measured(plan, service)
    hint = f"name `{LOW}` instead, or {_allow(service)}"
    for where, ref, file in _named(plan, source, service):
        if ref.level is not None and ref.level not in own:
            message = f"the level `{ref.level}` will not be measured: an instance that may be in use gets `{LOW}` alone"
            yield file.problem(where, message, hint, key=True)


def _percentiles(plan: Plan, source: Source, service: Service) -> Iterator[Problem]:
    sent = requests(plan, service)
    if sent is None:
        return
    said_in = source.file if plan.conditions.requests is not None else service.source.file
    for where, guard, file in _limits(plan, source, service):
        statistic = guard.ref.statistic or ""
        needed = MINIMUM.get(statistic, 0)
        if sent < needed:
            message = f"a {statistic.upper()} needs {needed} requests per level, and {said_in} says `requests: {sent}`"
            hint = f"write `requests: {needed}` under `conditions`, or limit `{guard.ref.metric.name}_p50`"
            yield file.problem(where, message, hint, key=True)


def _named(plan: Plan, source: Source, service: Service) -> Iterator[tuple[Path, MetricRef, Source]]:
    """Every metric that something is said about, with where it stands."""
    for index, step in enumerate(plan.steps):
        for gain in step.expect.gains:
            yield ("steps", index, "expect", str(gain.ref)), gain.ref, source
    for where, guard, file in _limits(plan, source, service):
        yield where, guard.ref, file


def _limits(plan: Plan, source: Source, service: Service) -> Iterator[tuple[Path, Guard, Source]]:
    """Every limit in force, with where it stands; one of the service's comes once for each step that it holds for."""
    for index, step in enumerate(plan.steps):
        for guard in plan.guards(service.slo, step):
            if guard.source == "accept":
                yield ("steps", index, "accept", str(guard.ref)), guard, source
            else:
                yield ("slo", str(guard.ref)), guard, service.source


def _allow(service: Service) -> str:
    return f"write `limits: {{load_on_live: true}}` in {service.source.file} if nobody else is served meanwhile"
