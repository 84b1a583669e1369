"""`changectl apply`: the whole story of a plan. Steps follow each other; the first that is not kept ends the run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from changectl import engines
from changectl.core.declared.placing import Placed
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.declared.step import Step
from changectl.core.errors import InputError, Problem, Refused
from changectl.core.history.events import LOCK_TAKEN_OVER, RUN_CLOSED, RUN_OPENED
from changectl.core.incident import Incident
from changectl.core.lifecycle import Ending, Outcome
from changectl.core.ports import HostAddress
from changectl.core.trial.calibration import Calibration
from changectl.workflow.conditions import LoadPlan, load_plan
from changectl.workflow.extend import Extension, require_same_order
from changectl.workflow.recorder import Recorder
from changectl.workflow.revert_order import way_to_settle
from changectl.workflow.steps import run_step
from changectl.workflow.telling import with_teller
from changectl.workflow.tools import Tools
from changectl.workflow.trial import Acceptance
from changectl.workflow.waiting import service_lock


@dataclass(frozen=True)
class Order:
    """A plan ready to be applied: validated, with everything it names at hand."""

    plan: Plan
    plan_file: str  # as people know it
    plan_text: str
    plan_digest: str
    service: Service
    placed: Sequence[Placed]
    workload: Sequence[Mapping[str, Any]]
    checks: Mapping[int, Sequence[str]]  # step number (from 1) -> testinfra files, absolute
    incident: Incident | None = None  # the service is sick already: no comparison, live guards instead
    covers: Mapping[str, str] = field(default_factory=dict)  # what the digest covers: each part with its own
    caller: HostAddress | None = None  # the host that sends the load; None: each instance's own
    calibration: Calibration | None = None  # nothing is changed: the saved configuration alone is measured


@dataclass(frozen=True)
class RunEnd:
    """How a run ended."""

    run: str
    endings: tuple[Ending, ...]

    @property
    def exit_code(self) -> int:
        """That of the first step that was not kept."""
        return next((ending.exit_code for ending in self.endings if not ending.outcome.in_force), 0)

    @property
    def last(self) -> Ending:
        """The ending that decided."""
        return next((ending for ending in self.endings if not ending.outcome.in_force), self.endings[-1])


def apply(order: Order, tools: Tools, extend: Callable[[], Extension] | None = None) -> RunEnd:
    """Apply a plan under the service's lock.

    Args:
        order: the plan.
        tools: the ports.
        extend: where a trial on record is to go on: reads it, once the lock is held.

    Raises:
        Locked: another change of the service is open.
        Refused: another run has to be settled first, or the trial on record cannot go on; nothing was opened.
        InputError: more than one step in an incident.
        ChangectlError: the record cannot be written; then nothing was done.
    """
    if order.incident and len(order.plan.steps) > 1:
        hint = "in an incident one thing is changed and watched: leave the step that mends the service"
        raise InputError(Problem(f"the plan has {len(order.plan.steps)} steps", order.plan_file, hint=hint))
    tools, loads = with_teller(tools), _loads(order)
    tools.secrets.learn_plan(order.plan)
    run = tools.new_run(order.plan.service)
    recorder = Recorder(tools.journal, tools.secrets, run)
    with tools.interrupts.listening(), service_lock(order.plan.service, run, tools) as dead:
        refuse_unfinished(order.plan.service, tools)
        extension = None if extend is None else extend()
        if extension is not None:
            require_same_order(extension, order.plan_digest, order.covers)
        recorder.note(RUN_OPENED, _opened(order, tools, extension))
        if dead is not None:
            recorder.note(LOCK_TAKEN_OVER, dead)
        tools.reporter.note(f"run {run}: {order.plan.reason}")
        endings = _steps(order, loads, run, tools, extension)
        end = RunEnd(run, endings)
        # What became of the service is decided, and on record for each step: a full disk here changes nothing of it.
        closed = recorder.insisting().note(RUN_CLOSED, {
            "exit_code": end.exit_code, "outcome": end.last.outcome.value, "reason": end.last.reason,
        })  # fmt: skip
        if closed is None:
            tools.reporter.note(f"the end of run {run} could not be recorded; once it can: changectl recover {run}")
    return end


def refuse_unfinished(service: str, tools: Tools) -> None:
    """Raises Refused while an earlier run of the service has no end: its configuration may still be in force."""
    way = settle_first(service, tools)
    if way is not None:
        raise Refused(way, reason="unfinished_run")


def settle_first(service: str, tools: Tools) -> str | None:
    """Which run of the service has to be settled first, and how; None: there is none."""
    unfinished = tools.memory.unfinished(service)
    if not unfinished:
        return None
    way = way_to_settle(unfinished[0], tools)
    return f"what run {unfinished[0]} left behind on service {service} is not known: {way}"


def _loads(order: Order) -> list[LoadPlan | None]:
    """The load of every step. Raises Refused when the service cannot be changed or measured: then nothing is opened."""
    if order.incident is not None or order.plan.effort.observed_for is not None:
        return [None for _ in order.plan.steps]
    return [load_of(order) for _ in order.plan.steps]


def load_of(order: Order) -> LoadPlan:
    """The load of a plan's steps. Raises Refused when the service cannot be measured."""
    protocols = engines.load(order.service.engine.spec).protocols
    if not protocols:
        raise Refused(
            f"service {order.service.service} declares no way to ask for an answer, so nothing can be measured: "
            "add `answer: {protocol: openai_completions}` to its engine",
            reason="no_protocol",
        )
    return load_plan(order.plan, order.service, protocols[0], order.workload, order.caller)


def _steps(
    order: Order, loads: Sequence[LoadPlan | None], run: str, tools: Tools, extension: Extension | None
) -> tuple[Ending, ...]:
    endings: list[Ending] = []
    longer = extension.trials if extension else {}
    for number, (step, load) in enumerate(zip(order.plan.steps, loads, strict=True), 1):
        checks = order.checks.get(number, ())
        acceptance = Acceptance(order.plan, step, load, checks, order.incident, longer, order.calibration)
        endings.append(run_step(order.placed, acceptance, Recorder(tools.journal, tools.secrets, run, number), tools))
        if not endings[-1].outcome.in_force:
            break
    return tuple(endings)


def _opened(order: Order, tools: Tools, extension: Extension | None) -> dict[str, Any]:
    plan = order.plan
    return {
        "plan": order.plan_file,
        "plan_digest": order.plan_digest,
        "plan_text": tools.secrets.redactor.text(order.plan_text),
        "service": plan.service,
        "workload": str(_workload(order)),
        "model": order.service.model.name or order.service.model.path,
        "reason": plan.reason,
        "ticket": plan.ticket,
        "effort": str(plan.effort),
        "on_partial": plan.on_partial,
        **({"accept_undecided": True} if plan.accept_undecided else {}),
        "actor": tools.actor,
        "hosts": sorted({placed.host.name for placed in order.placed}),
        "tool_version": tools.version,
        "steps": [_step(step) for step in plan.steps],
        "covers": dict(order.covers),
        **({} if extension is None else {"extends": extension.run}),
        **({} if order.incident is None else {"incident": order.incident.reason}),
        **({} if order.calibration is None else {"calibration": asdict(order.calibration)}),
    }


def _workload(order: Order) -> str:
    """The file with the requests: the plan's own word counts before the service's."""
    return order.plan.conditions.workload or order.service.conditions.workload


def _step(step: Step) -> dict[str, Any]:
    spec = step.change.spec.model_dump(mode="json", by_alias=True)
    asserted = ("from",) if getattr(step.change.spec, "from_given", False) else ()
    change = {"kind": step.change.kind, **{key: spec.get(key) for key in ("name", *asserted, "to")}}
    return {
        "change": change,
        "summary": step.change.describe(),
        "expect": str(step.expect),
        "accept": [str(guard) for guard in step.accept],
        "on_inconclusive": step.on_inconclusive,
        **({} if step.watch is None else {"watch": step.watch}),
    }


__all__ = ["Order", "Outcome", "RunEnd", "apply"]
