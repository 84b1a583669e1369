"""What the effort of a plan can decide on an instance: asked before anything is started."""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.declared.plan import Plan
from changectl.core.declared.step import Step
from changectl.core.rollout import look_at
from changectl.core.trial.order import MOST_PAIRS, Times
from changectl.core.trial.power import Power, blind_spots
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.contact import Contact
from changectl.workflow.noise import known_noise, usual_figures
from changectl.workflow.rollout import hardware_of
from changectl.workflow.tools import Tools


def power_of(
    contact: Contact, contacts: Sequence[Contact], plan: Plan, step: Step, load: LoadPlan | None, tools: Tools
) -> Power:
    """What the plan's effort can decide of a step on one instance.

    Args:
        contact: the instance.
        contacts: all of the step, in order: the first one's trial counts for those that are like it.
        plan: the plan.
        step: its step.
        load: what is sent; None: nothing is.
        tools: the ports.
    """
    if load is None or plan.effort.quick:
        return Power(spared="such an effort sees gross harm alone, and says so")
    first = next((one for one in contacts if one.takes_part), contact)
    if not contact.takes_part:
        return Power(spared="there is nothing to do")
    unlike = hardware_of(contact).unlike(hardware_of(first))
    if look_at(unlike, first=contact is first) == "short":
        return Power(spared=f"it gets a short check; the trial on {first.target.name} counts for it, too")
    service, pairs = (
        contact.target.service,
        _pairs(plan, load, service_name=contact.target.service.service, tools=tools),
    )
    blind = blind_spots(
        pairs,
        known_noise(contact, load, tools),
        usual_figures(contact, load, tools),
        service_class=service.class_,
        guards=plan.guards(service.slo, step),
        expect=step.expect.gains,
        levels=list(load.levels),
    )
    return Power(pairs, blind, accepted=plan.accept_undecided, service=service.service)


def _pairs(plan: Plan, load: LoadPlan, *, service_name: str, tools: Tools) -> int:
    """As many as the effort has; of a time as many as fit, by how long starts and phases took lately."""
    if plan.effort.seconds is None:
        return plan.effort.pairs(Times(0.0, 0.0))
    spent = tools.memory.spent(service_name, load.facts())
    start, phase = spent.start_cost, min(spent.phases, default=load.expected_seconds)
    if start is None or phase is None:
        return MOST_PAIRS  # nobody knows, so nothing is held against it
    return plan.effort.pairs(Times(start.out.least, phase))
