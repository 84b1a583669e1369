"""The plan of a calibration: nothing is changed, and the load is the one that the service's plans are judged with."""

from __future__ import annotations

from collections.abc import Iterator

from changectl.core.declared import levels, measured_path
from changectl.core.declared.change import ChangeSpec
from changectl.core.declared.effort import STANDARD, TIME, Effort
from changectl.core.declared.plan import Plan
from changectl.core.declared.service import Service
from changectl.core.declared.step import Change, Step
from changectl.core.declared.traffic_spec import NONE
from changectl.core.declared.wanted import Wanted
from changectl.core.errors import Problem
from changectl.core.history.events import CALIBRATION
from changectl.core.trial.calibration import Calibration

NOTHING = Wanted(CALIBRATION, "", None, None)


class Nothing(ChangeSpec):
    """No change: no plan can name it."""

    def describe(self) -> str:
        """What stands in place of a change."""
        return "calibration: nothing is changed"


def calibration_plan(service: str, calibration: Calibration, outage: float | None, reason: str) -> Plan:
    """The plan; `outage`: seconds that an instance may be stopped or loading in all. `reason` is one line."""
    step = Step(change=Change(kind=CALIBRATION, spec=Nothing()), expect="neutral")
    effort = Effort(STANDARD) if calibration.seconds is None else Effort(TIME, calibration.seconds)
    plan = Plan(version=1, service=service, reason=reason, effort=effort, steps=(step,))
    return plan.model_copy(update={"outage": outage})


def check(plan: Plan, service: Service) -> Iterator[Problem]:
    """What of it the service does not allow; the same that a plan is held against."""
    yield from levels.check(plan, service.source, service)
    yield from measured_path.check(plan, service.source, service)
    if plan.outage is None and service.traffic == NONE:
        text = f"a calibration starts {service.service} again for every phase, and nothing takes it out of service"
        yield Problem(text, hint="add `--outage 30m`, the time that it may be stopped or loading in all")
