"""Which load levels a service really gets, and what of a plan could therefore never be judged.

An instance that may be serving others gets the level called `low` and nothing else, unless its service allows more, or
takes it out of service for the trial.
What a plan says about any other level would be promised and never seen, so it is refused while the plan is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from changectl.core.declared import level_checks
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.declared.source import Path, Source
from changectl.core.declared.traffic_spec import NONE
from changectl.core.errors import Problem
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.metrics import Guard, MetricRef
from changectl.core.units import LevelLoad

LOW = "low"  # the level that a serving instance may always get
DEFAULT_SECONDS = 20.0  # per level and phase, where neither service nor plan says anything


def measured(plan: Plan, service: Service) -> Mapping[str, LevelLoad]:
    """The levels that will be measured, in their order; empty: the service allows none of those that there are."""
    levels = plan.levels(service.conditions.levels)
    if service.limits.load_on_live or service.traffic != NONE:  # out of service, nobody else is served
        return levels
    return {name: load for name, load in levels.items() if name == LOW}


def left_out(plan: Plan, service: Service) -> tuple[str, ...]:
    """The names of the levels that are declared and will not be measured."""
    own = measured(plan, service)
    return tuple(name for name in plan.levels(service.conditions.levels) if name not in own)


def requests(plan: Plan, service: Service) -> int | None:
    """How many requests each level gets in each phase; None: a level lasts for a time.

    A time that the plan says takes the place of a number that its service says.
    """
    own = plan.conditions
    if own.requests is not None or own.seconds is not None:
        return own.requests
    return service.conditions.requests


def seconds(plan: Plan, service: Service) -> float | None:
    """How long each level lasts in each phase; None: it gets a number of requests."""
    if requests(plan, service) is not None:
        return None
    own = plan.conditions.seconds
    return own if own is not None else service.conditions.seconds or DEFAULT_SECONDS


def sizes(plan: Plan, service: Service) -> Mapping[str, LevelSize]:
    """How much of each level will be measured."""
    time, number = seconds(plan, service), requests(plan, service)
    return {name: LevelSize(load, time, number) for name, load in measured(plan, service).items()}


def check(plan: Plan, source: Source, service: Service) -> list[Problem]:
    """What of a plan could never be judged: levels that are not measured, or get too few requests; limits without data.

    Args:
        plan: the plan.
        source: the file it was read from, for the places.
        service: its service.
    """
    if not measured(plan, service):
        return [_no_low(plan, source, service)]
    of_levels = source if plan.conditions.levels else service.source
    return [
        *_levels(plan, source, service),
        *level_checks.sizes(sizes(plan, service), of_levels),
        *_percentiles(plan, source, service),
        *_goodput(plan, source, service),
    ]


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
    length = source if plan.conditions.requests is not None else service.source
    for where, guard, file in _limits(plan, source, service):
        if found := level_checks.percentile(guard, sizes(plan, service), length):
            yield file.problem(where, *found, key=True)


def _goodput(plan: Plan, source: Source, service: Service) -> Iterator[Problem]:
    for where, ref, file in _named(plan, source, service):
        if found := level_checks.goodput(ref, sizes(plan, service), service.slo, service.source.file):
            yield file.problem(where, *found, key=True)


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
