"""`changectl plan`: everything that apply would do until the first write, told; nothing is changed anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from changectl import traffic
from changectl.core.cost import Span, Spent, StartCost
from changectl.core.declared.placing import Placed
from changectl.core.errors import ChangectlError
from changectl.core.judging.hardware import Hardware
from changectl.core.precheck import CheckResult, Seen, ThreeValues, refuses
from changectl.core.redaction.redactor import Redactor
from changectl.core.rollout import Look, look_at
from changectl.core.settings import Value
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel
from changectl.core.trial.order import MOST_PAIRS, Times, length
from changectl.core.trial.price import guarded, price
from changectl.core.units import format_duration
from changectl.workflow.apply import Order, load_of
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.contact import Ahead, Contact, assert_from, make_contact, open_target
from changectl.workflow.noise import known_noise
from changectl.workflow.power import power_of
from changectl.workflow.prechecks import check
from changectl.workflow.rollout import hardware_of
from changectl.workflow.side_by_side import refuse_shared_files
from changectl.workflow.tools import Tools

SHORT_STARTS, SHORT_PHASES = 2, 2  # of an instance that gets a short check


@dataclass(frozen=True)
class InstancePreview:
    """What would happen to one instance."""

    instance: str
    path: str
    diff: str  # redacted
    three: ThreeValues
    checks: tuple[CheckResult, ...]
    nothing_to_do: bool
    after_steps: tuple[int, ...] = ()  # earlier steps on top of which the difference is; the values are those of now
    hardware: Hardware | None = None
    look: Look | None = None  # how it would be judged; None: there is nothing to do
    noise: NoiseModel = NOTHING_KNOWN  # of its host under this load

    @property
    def refused(self) -> bool:
        """Whether a required pre-check forbids the change."""
        return bool(refuses(self.checks))


@dataclass(frozen=True)
class StepPreview:
    """What one step would do."""

    change: str
    instances: tuple[InstancePreview, ...]
    starts: int  # of each instance that gets the whole trial
    measuring_seconds: Span | None  # both phases on all instances; None: a number of requests that was never timed
    load_seconds: StartCost | None  # without an answer, for one start and for the way back; None: never recorded
    traffic: str  # what users notice while an instance restarts
    watch: float = 0.0  # seconds that the change is watched live before it is kept
    sight: tuple[str, ...] = ()  # what a trial of several pairs can tell, in sentences
    refusal: str = ""  # why it cannot even be computed
    all_starts: int = 0  # of all instances together


@dataclass
class _Progress:
    """How far one instance would be after the steps that were looked at already."""

    files: dict[str, bytes] = field(default_factory=dict)
    settings: dict[str, Value] = field(default_factory=dict)
    steps: dict[str, tuple[int, ...]] = field(default_factory=dict)  # resolved path -> steps that write it

    def take(self, number: int, contact: Contact) -> tuple[int, ...]:
        """Remember what a step does; returns the earlier steps that wrote the same file."""
        path, wanted = contact.resolved_path, contact.wanted
        earlier = self.steps.get(path, ())
        if not contact.changes_nothing:
            self.files[path] = contact.edit.after
            self.steps[path] = (*earlier, number)
        if wanted.setting is not None:
            self.settings[wanted.label] = wanted.to
        return earlier


def preview(order: Order, tools: Tools) -> list[StepPreview]:
    """Look at the hosts and compute.

    A step is shown as it would be after the steps before it: its difference is on top of theirs, and what it asserts is
    held against what they leave behind.
    """
    tools.secrets.learn_plan(order.plan)
    progress = {one.name: _Progress() for one in order.placed}
    with tools.interrupts.listening():
        return [_step(order, number, tools, progress) for number in range(len(order.plan.steps))]


def _step(order: Order, number: int, tools: Tools, progress: Mapping[str, _Progress]) -> StepPreview:
    impact = traffic.load(order.service.traffic).impact()
    try:
        load = None if order.plan.effort.observed_for is not None else load_of(order)
        with ExitStack() as doors:
            contacts = [_contact(order, number, one, tools, doors, progress[one.name]) for one in order.placed]
            refuse_shared_files(contacts)
            instances = tuple(
                _instance(order, number, one, tools, progress[one.target.name], load, contacts) for one in contacts
            )
    except ChangectlError as error:
        text = tools.secrets.redactor.text(str(error))
        return StepPreview(_change(order, number, tools), (), 0, None, None, impact, refusal=text)
    spent = tools.memory.spent(order.plan.service, load.facts() if load else {})
    observed = order.plan.effort.observed_for
    planned = _phase(load.expected_seconds if load else None, spent)
    phase = planned if observed is None else Span(observed, observed)
    instances = _looks(instances, live=observed is not None)
    noise = next((one.noise for one in instances if one.look == "trial"), NOTHING_KNOWN)
    starts, phases, sight = _trial(order, spent, phase, list(load.levels) if load else [], noise)
    trials, short = (sum(one.look in looks for one in instances) for looks in (("trial", "live"), ("short",)))
    measuring = None if phase is None else phase.times(phases * trials + SHORT_PHASES * short)
    watch = order.plan.steps[number].watch or 0.0
    return StepPreview(
        _change(order, number, tools), instances, starts, measuring, spent.start_cost, impact, watch, sight,
        all_starts=starts * trials + SHORT_STARTS * short,
    )  # fmt: skip


def _looks(instances: Sequence[InstancePreview], *, live: bool) -> tuple[InstancePreview, ...]:
    """How each would be judged in its turn, as the rollout decides it."""
    first = next((one for one in instances if not one.nothing_to_do), None)

    def look(one: InstancePreview) -> Look | None:
        if one.nothing_to_do or first is None or one.hardware is None or first.hardware is None:
            return None
        return look_at(one.hardware.unlike(first.hardware), first=one is first, live=live)

    return tuple(replace(one, look=look(one)) for one in instances)


def _phase(planned: float | None, spent: Spent) -> Span | None:
    """What one phase takes: as lately with this very load, else as planned."""
    return Span.of(spent.phases) or (None if planned is None else Span(planned, planned))


def _trial(
    order: Order, spent: Spent, phase: Span | None, levels: Sequence[str], noise: NoiseModel
) -> tuple[int, int, tuple[str, ...]]:
    """At most so many starts and phases of an instance, and what they can tell."""
    effort, start = order.plan.effort, spent.start_cost
    if effort.observed_for is not None:
        return 1, 2, ()
    if effort.quick:
        return (2 if len(order.placed) > 1 else 1), 2, ()
    times = Times(load=start.out.most if start else 0.0, phase=phase.most if phase else 0.0)
    known = phase is not None and start is not None
    pairs = effort.pairs(times) if known or effort.seconds is None else MOST_PAIRS
    if not pairs:
        return 1, 1, (f"no pair of phases fits into {effort}: {effort.too_short(times)}",)
    own = length(pairs, times)
    figures = guarded(order.service.class_)
    sentences = price(pairs, times, noise, figures, len(figures) * max(1, len(levels)), levels).sentences()
    allowed = order.plan.outage
    if allowed is not None and own.down > allowed:
        down, room = format_duration(own.down, 2), format_duration(allowed)
        sentences.append(
            f"All pairs would take up to {down} without an answer; with an outage of {room} it ends before."
        )
    return own.starts, own.phases, tuple(sentences[1:])


def _contact(order: Order, number: int, placed: Placed, tools: Tools, doors: ExitStack, progress: _Progress) -> Contact:
    target = open_target(placed, tools)
    doors.callback(target.close)
    ahead = Ahead(dict(progress.files), dict(progress.settings))
    contact = make_contact(target, order.plan.steps[number], tools, ahead)
    if not contact.changes_nothing:
        assert_from(contact)
    return contact


def _instance(
    order: Order,
    number: int,
    contact: Contact,
    tools: Tools,
    progress: _Progress,
    load: LoadPlan | None,
    contacts: Sequence[Contact],
) -> InstancePreview:
    starts = order.plan.effort.starts_in_a_row(len(order.placed))
    noticed = order.plan.outage is not None
    power = power_of(contact, contacts, order.plan, order.plan.steps[number], load, tools)
    checks = check(contact, tools, starts=starts, capture=None, preview=True, load=load, noticed=noticed, power=power)
    edit = contact.edit
    return InstancePreview(
        instance=contact.target.name,
        path=edit.path,
        diff=tools.secrets.redactor.diff(edit.before, edit.after, edit.path),
        three=_three(contact.three, tools.secrets.redactor),
        checks=tuple(_check(result, tools.secrets.redactor) for result in checks),
        nothing_to_do=contact.changes_nothing,
        after_steps=progress.take(number + 1, contact),
        hardware=hardware_of(contact),
        noise=NOTHING_KNOWN if load is None else known_noise(contact, load, tools),
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
