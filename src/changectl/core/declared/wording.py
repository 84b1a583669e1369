"""What a plan would do, in sentences for people and as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from changectl.core.counting import counted
from changectl.core.declared import levels as load_levels
from changectl.core.declared.effort import Effort
from changectl.core.declared.measured_path import BALANCER, measured_path
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.declared.step import Step
from changectl.core.units import format_duration
from changectl.core.workload.requests import Workload

_INCONCLUSIVE = {
    "revert": "the old state comes back",
    "ask": "you are asked; without an answer the old state comes back",
    "keep": "it is kept, listed as not judged",
}


@dataclass(frozen=True, slots=True)
class Section:
    """What is said about a plan, or about one of its steps: a title, and one sentence after the other."""

    title: str
    sentences: tuple[str, ...]


def plan_sections(plan: Plan, service: Service, workload: Workload, file: str) -> list[Section]:
    """The plan, and then each of its steps."""
    levels = load_words(plan, service)
    steps = counted(len(plan.steps), "step")
    sentences = [
        f"reason: {plan.reason}",
        *_measuring(plan, service, workload, levels),
        *([f"it may take {format_duration(plan.outage)} out of service"] if plan.outage else []),
    ]
    head = f"{file}: {steps} for service {plan.service} ({service.engine.name}, started by {service.manager.name})"
    return [
        Section(head, tuple(sentences)),
        *(_step(plan, service, step, number) for number, step in enumerate(plan.steps, start=1)),
    ]


def _measuring(plan: Plan, service: Service, workload: Workload, levels: str) -> list[str]:
    if plan.effort.observed_for is not None:
        return [levels]
    sent = f"measured with {counted(len(workload.entries), 'prompt')} of {workload.file}, {levels}"
    return [sent, f"the load comes from {caller_words(service)}"]


def load_words(plan: Plan, service: Service) -> str:
    """What will be measured, and which levels will not: `60 requests at low (1 stream); not measured: ...`."""
    if (observed := plan.effort.observed_for) is not None:
        return f"{format_duration(observed)} of live traffic before the change and after it; no load is sent"
    sent = load_levels.requests(plan, service)
    shown = ", ".join(f"{name} ({size})" for name, size in load_levels.sizes(plan, service).items())
    left = ", ".join(load_levels.left_out(plan, service))
    why = f"; not measured: {left} (others may be served: limits: load_on_live is false)" if left else ""
    way = ", through the balancer" if measured_path(plan, service) == BALANCER else ""
    return f"{f'{sent} requests ' if sent else ''}at {shown or 'no level'}{way}{why}"


def caller_words(service: Service) -> str:
    """Which host sends the load: `gateway-1`, or `each instance's own host`."""
    return service.caller or "each instance's own host"


def _step(plan: Plan, service: Service, step: Step, number: int) -> Section:
    sentences = [_promise(step, plan.effort)]
    guards = plan.guards(service.slo, step)
    if guards:
        sentences.append(f"limits: {_listed(f'{guard.ref} {guard.limit} ({guard.source})' for guard in guards)}")
    sentences.append(f"every other metric keeps the default margin of {service.class_} services")
    if step.checks:
        sentences.append(f"these tests have to pass on every host: {_listed(step.checks)}")
    if step.watch is not None:
        sentences.append(
            f"then it is watched live for {format_duration(step.watch)}, and kept only where nothing breaks meanwhile"
        )
    sentences.append(f"if the evidence does not suffice, {_INCONCLUSIVE[step.on_inconclusive]}")
    return Section(f"Step {number}: {step.change.describe()}", tuple(sentences))


def _promise(step: Step, effort: Effort) -> str:
    if step.expect.neutral:
        return "it is kept when nothing gets worse"
    if not effort.quick:
        return f"it is expected to bring {step.expect}, and kept only where that is seen and nothing gets worse"
    return (
        f"it is expected to bring {step.expect}; effort {effort.name} sees gross harm only, so it is kept when there "
        "is none and the gain is shown as not judged"
    )


def _listed(items: Iterable[object]) -> str:
    return ", ".join(str(item) for item in items)


def plan_document(plan: Plan, service: Service, workload: Workload, file: str) -> dict[str, Any]:
    """The same facts as JSON."""
    sends = plan.effort.observed_for is None
    return {
        "file": file,
        "service": plan.service,
        "engine": service.engine.name,
        "manager": service.manager.name,
        "reason": plan.reason,
        "ticket": plan.ticket,
        "effort": str(plan.effort),
        "outage_seconds": plan.outage,
        "workload": {"file": workload.file, "sha256": workload.digest, "requests": len(workload.entries)},
        "levels": {name: str(load) for name, load in load_levels.measured(plan, service).items()} if sends else {},
        "not_measured": list(load_levels.left_out(plan, service)) if sends else [],
        "caller": service.caller,
        "path": measured_path(plan, service) if sends else None,
        "requests_per_level": load_levels.requests(plan, service),
        "steps": [_step_document(plan, service, step) for step in plan.steps],
    }


def _step_document(plan: Plan, service: Service, step: Step) -> dict[str, Any]:
    guards = plan.guards(service.slo, step)
    return {
        "change": step.change.describe(),
        "kind": step.change.kind,
        "expect": str(step.expect),
        "limits": [{"metric": str(one.ref), "limit": str(one.limit), "source": one.source} for one in guards],
        "checks": list(step.checks),
        "on_inconclusive": step.on_inconclusive,
        "watch_seconds": step.watch,
    }
