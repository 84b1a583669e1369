"""A plan: why one service shall change, and the steps, each exactly one change with its expectation and its price.

A plan is short enough to be read at 3 a.m.; this grammar refuses what such a reader could misunderstand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from changectl.core.declared.change import ChangeSpec
from changectl.core.declared.effort import STANDARD, Effort, EffortField
from changectl.core.declared.fields import Duration, Level, Line, Name, NotYet, ProjectPath, Version, some_levels
from changectl.core.declared.grammar import Grammar, fault, validate
from changectl.core.declared.load_fields import Requests
from changectl.core.declared.measured_path import MeasuredPath
from changectl.core.declared.source import Source, read_yaml
from changectl.core.declared.step import Step
from changectl.core.measuring.metrics import Guard
from changectl.core.rollout import OnPartial
from changectl.core.units import LevelLoad


def _at_least_one(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    if not steps:
        raise fault("a plan without steps changes nothing", "write at least one `- change: ...` with its `expect`")
    return steps


Levels = Annotated[dict[Name, Level], AfterValidator(some_levels)]


class ConditionsOverride(Grammar):
    """What this plan measures differently from the service's own conditions."""

    workload: ProjectPath | None = Field(None, description="JSON lines file with the requests to send")
    levels: Levels | None = Field(None, description="load levels; replaces the service's")
    seconds: Duration | None = Field(None, description="time per level and phase")
    seed: int | None = Field(None, ge=0, le=2**63 - 1, description="seed of the requests and of an open level's times")
    requests: Requests | None = Field(None, description="requests per level and phase, instead of time")
    path: MeasuredPath | None = Field(None, description="which way the load takes: endpoint or balancer")


class Plan(Grammar):
    """One service, a reason, and one or more steps; each is judged before the next begins."""

    version: Version = Field(description="version of this grammar", examples=[1])
    service: Name = Field(description="the service's name: services/NAME.yml", examples=["chat"])
    reason: Line = Field(
        description="why, for whoever reads the history", examples=["OPS-1234 GPU idle, 12 requests wait"]
    )
    ticket: Line | None = Field(None, description="reference into a ticket system", examples=["OPS-1234"])
    effort: EffortField = Field(Effort(STANDARD), description="how much evidence is gathered", examples=["quick"])
    outage: Duration | None = Field(
        None, description="the time out of service that this plan may take", examples=["30m"]
    )
    accept_undecided: bool = Field(
        False, description="whether a trial may begin whose effort cannot decide its limits on this host"
    )
    on_partial: OnPartial = Field(
        "stop",
        description="what becomes of instances that keep a step when a later one does not: they stay, or go back too",
    )
    caller: NotYet = Field(None, description="the host that sends the load")
    conditions: ConditionsOverride = Field(ConditionsOverride(), description="overrides of the service's conditions")
    steps: Annotated[tuple[Step, ...], AfterValidator(_at_least_one)] = Field(description="the changes, in order")

    def levels(self, of_service: Mapping[str, LevelLoad]) -> Mapping[str, LevelLoad]:
        """The load levels in force: the plan's own where it has some, the service's otherwise."""
        return self.conditions.levels or of_service

    def guards(self, slo: Iterable[Guard], step: Step) -> tuple[Guard, ...]:
        """The absolute limits in force for a step: its `accept` where both name a figure, else the service's `slo`."""
        accepted = {str(guard.ref) for guard in step.accept}
        return (*step.accept, *(guard for guard in slo if str(guard.ref) not in accepted))


def load(
    content: bytes | str,
    file: str,
    *,
    kinds: Mapping[str, type[ChangeSpec]],
    levels: Iterable[str] | None = None,
    lacking: Mapping[str, str] | None = None,
) -> Plan:
    """Read a plan.

    Args:
        content: the file's bytes.
        file: its name for messages.
        kinds: the grammar of every kind of change (`kinds.specs()`).
        levels: the service's load levels; None: the service is not at hand, any level is taken.
        lacking: metrics that the service cannot give, and why.

    Raises:
        InputError: with every problem of the file.
    """
    return from_source(read_yaml(content, file), kinds=kinds, levels=levels, lacking=lacking)


def from_source(
    source: Source,
    *,
    kinds: Mapping[str, type[ChangeSpec]],
    levels: Iterable[str] | None = None,
    lacking: Mapping[str, str] | None = None,
) -> Plan:
    """As `load`, for a file that is read already."""
    return validate(source, Plan, {"kinds": kinds, "levels": levels_in_force(source, levels), "lacking": lacking or {}})


def levels_in_force(source: Source, of_service: Iterable[str] | None) -> tuple[str, ...] | None:
    """The names of the levels that a plan's metrics may point at; None: not known."""
    conditions = source.data.get("conditions") if isinstance(source.data, dict) else None
    own = conditions.get("levels") if isinstance(conditions, dict) else None
    if isinstance(own, dict) and own:
        return tuple(own)
    return None if of_service is None else tuple(of_service)


def json_schema(kinds: Mapping[str, type[ChangeSpec]]) -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a plan, for editors; every kind's grammar included."""
    schema = Plan.model_json_schema()
    definitions = schema.setdefault("$defs", {})
    properties = {}
    for kind, spec in kinds.items():
        own = spec.model_json_schema()
        definitions.update(own.pop("$defs", {}))
        properties[kind] = own
    definitions["Step"]["properties"]["change"] = {
        "type": "object",
        "description": "exactly one kind of change with its settings",
        "properties": properties,
        "additionalProperties": False,
        "minProperties": 1,
        "maxProperties": 1,
    }
    return {**schema, "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "changectl plan"}
