"""What is not the same on all instances of a service, by the record: a rollout that stopped on its way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from changectl.core.history.change import ChangeText
from changectl.core.history.runs import CALIBRATED, IN_PART, RunSummary, StepSummary


@dataclass(frozen=True, slots=True)
class Mix:
    """A setting that has several values at once.

    Attributes:
        run: the last run that changed it anywhere and is in force.
        plan: that run's plan.
        change: the change.
        values: by instance; None: absent.
    """

    run: str
    plan: str
    change: ChangeText
    values: Mapping[str, str | None]

    @property
    def by_value(self) -> dict[str | None, list[str]]:
        """The instances of each value, the change's own value first."""
        found: dict[str | None, list[str]] = {}
        for name, value in sorted(self.values.items(), key=lambda item: item[1] != self.change.after):
            found.setdefault(value, []).append(name)
        return found


@dataclass(slots=True)
class _Setting:
    run: RunSummary
    change: ChangeText
    values: dict[str, str | None] = field(default_factory=dict)

    def take(self, run: RunSummary, step: StepSummary) -> None:
        if step.changed_something:
            self.run, self.change = run, step.change
        ends = {one.name: step.change.after if one.has_value else one.found for one in step.instances}
        # An older record does not name the instances: it was all of them.
        self.values |= ends or dict.fromkeys(self.values, step.change.after)


def mixes(in_force: Iterable[RunSummary]) -> list[Mix]:
    """What is mixed now.

    Args:
        in_force: the runs of one service that were not taken back, oldest first.
    """
    settings: dict[str, _Setting] = {}
    for run in in_force:
        for step in run.steps:
            if step.outcome in IN_PART and step.reason != CALIBRATED:
                name = step.change.engine_name or step.change.name
                settings.setdefault(name, _Setting(run, step.change)).take(run, step)
    return [
        Mix(one.run.run, one.run.plan, one.change, one.values)
        for one in settings.values()
        if len(set(one.values.values())) > 1
    ]
