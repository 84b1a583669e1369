"""Which way the load takes to an instance: straight to its endpoint, or through the balancer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from changectl.core.declared.plan import Plan
    from changectl.core.declared.service import Service
    from changectl.core.declared.source import Source
    from changectl.core.errors import Problem

MeasuredPath = Literal["endpoint", "balancer"]
ENDPOINT: Final[MeasuredPath] = "endpoint"
BALANCER: Final[MeasuredPath] = "balancer"
ALMOST_ALL = 0.98  # of the tokens that were received, which the instance itself has to have generated


def measured_path(plan: Plan, service: Service) -> MeasuredPath:
    """The one path of all measurements of a plan."""
    return plan.conditions.path or service.conditions.path


def check(plan: Plan, source: Source, service: Service) -> Iterator[Problem]:
    """An instance that the balancer's path does not lead to cannot be measured on it."""
    if measured_path(plan, service) != BALANCER:
        return
    found = service.instances
    declared = found if isinstance(found, tuple) else (found.each,)
    if all(one.through_balancer for one in declared):
        return
    named_in = source if plan.conditions.path else service.source
    message = "no address leads through the balancer to each of its instances"
    hint = f"add `through_balancer: URL` to each instance in {service.source.file}, or leave `path` out"
    yield named_in.problem(("conditions", "path"), message, hint)


def arrived(received: float | None, generated: float | None) -> str:
    """Why it is not proven that what was received came from the instance; "": it did.

    Args:
        received: output tokens of all good answers; None: one of them does not tell, or there is none.
        generated: by how much the instance's own counter of output tokens grew meanwhile; None: not known.
    """
    if not received:
        return "no answer, or not every one, tells how many tokens it has, so nobody knows whose answers these were"
    if generated is None:
        return "the engine does not count the tokens that it generates, so nobody knows whose answers these were"
    if generated < ALMOST_ALL * received:
        return f"{received:.0f} tokens were received, and the instance generated {generated:.0f} of them"
    return ""
