"""`changectl plan`: everything that apply would do until the first write, told; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from changectl.core.errors import ChangectlError
from changectl.core.placing import Placed
from changectl.core.precheck import CheckResult, Seen, ThreeValues, refuses
from changectl.core.redaction import Redactor
from changectl.workflow.apply import Order, load_of
from changectl.workflow.contact import assert_from, make_contact, open_target
from changectl.workflow.prechecks import check
from changectl.workflow.tools import Tools


@dataclass(frozen=True)
class InstancePreview:
    """What would happen to one instance."""

    instance: str
    path: str
    diff: str  # redacted
    three: ThreeValues
    checks: tuple[CheckResult, ...]
    nothing_to_do: bool

    @property
    def refused(self) -> bool:
        """Whether a required pre-check forbids the change."""
        return bool(refuses(self.checks))


@dataclass(frozen=True)
class StepPreview:
    """What one step would do."""

    change: str
    instances: tuple[InstancePreview, ...]
    starts: int  # of each instance
    measuring_seconds: float | None  # both phases on all instances; None: its length is a number of requests
    load_seconds: float | None  # the last good start; None: never measured
    refusal: str = ""  # why it cannot even be computed


def preview(order: Order, tools: Tools) -> list[StepPreview]:
    """Look at the hosts and compute. A step that builds on an earlier one is shown against the present state."""
    tools.secrets.learn_plan(order.plan)
    with tools.interrupts.listening():
        return [_step(order, number, tools) for number in range(len(order.plan.steps))]


def _step(order: Order, number: int, tools: Tools) -> StepPreview:
    fresh = len(order.placed) > 1
    load_seconds = tools.memory.load_seconds(order.plan.service)
    try:
        load = load_of(order)
        with ExitStack() as doors:
            instances = tuple(_instance(order, number, one, tools, doors) for one in order.placed)
    except ChangectlError as error:
        text = tools.secrets.redactor.text(str(error))
        return StepPreview(_change(order, number, tools), (), 0, None, load_seconds, refusal=text)
    seconds = load.expected_seconds
    measuring = None if seconds is None else 2 * seconds * len(order.placed)
    return StepPreview(_change(order, number, tools), instances, 2 if fresh else 1, measuring, load_seconds)


def _instance(order: Order, number: int, placed: Placed, tools: Tools, doors: ExitStack) -> InstancePreview:
    target = open_target(placed, tools)
    doors.callback(target.close)
    contact = make_contact(target, order.plan.steps[number], tools)
    if not contact.changes_nothing:
        assert_from(contact)
    checks = check(contact, tools, starts=3 if len(order.placed) > 1 else 2, capture=None, preview=True)
    edit = contact.edit
    return InstancePreview(
        instance=target.name,
        path=edit.path,
        diff=tools.secrets.redactor.diff(edit.before, edit.after, edit.path),
        three=_three(contact.three, tools.secrets.redactor),
        checks=tuple(_check(result, tools.secrets.redactor) for result in checks),
        nothing_to_do=contact.changes_nothing,
    )


def _change(order: Order, number: int, tools: Tools) -> str:
    return tools.secrets.redactor.known(order.plan.steps[number].change.describe())


def _three(three: ThreeValues, redactor: Redactor) -> ThreeValues:
    def shown(seen: Seen) -> Seen:
        return seen if seen.value is None else replace(seen, value=redactor.known(seen.value))

    return replace(three, file=shown(three.file), process=shown(three.process), engine=shown(three.engine))


def _check(result: CheckResult, redactor: Redactor) -> CheckResult:
    return replace(result, figure=redactor.known(result.figure), detail=redactor.known(result.detail))


def would_proceed(previews: Sequence[StepPreview]) -> bool:
    """Whether apply would get past its pre-checks, as far as that can be seen without changing anything."""
    return all(not one.refusal and not any(each.refused for each in one.instances) for one in previews)
