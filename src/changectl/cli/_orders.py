"""From a plan's path to an order: everything read, validated and placed on hosts, none of which was touched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from changectl.adapters.files import load_plan
from changectl.core.placing import check_names, place
from changectl.workflow.apply import Order

if TYPE_CHECKING:
    from changectl.cli.wiring import Workplace


def order_of(plan_path: Path, work: Workplace) -> Order:
    """Read a plan. Raises InputError with every problem of it and of what it names."""
    loaded = load_plan(plan_path, work.project)
    check_names(loaded.service, work.inventory.known())
    placed = place(loaded.service, work.inventory.hosts)
    checks = {
        number: [str(loaded.checks[name]) for name in step.checks] for number, step in enumerate(loaded.plan.steps, 1)
    }
    return Order(
        plan=loaded.plan,
        plan_text=loaded.content.decode("utf-8", "replace"),
        plan_digest=loaded.digest([one.host.name for one in placed], work.tools.version),
        service=loaded.service,
        placed=placed,
        workload=loaded.workload.entries,
        checks=checks,
    )
