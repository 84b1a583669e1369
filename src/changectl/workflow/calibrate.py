"""`changectl calibrate`: the saved configuration against itself, phase by phase as a trial, so that noise is known.

It is a step like any other up to the first start: lock, leases, pre-checks, snapshot, dead-man. Then every phase is a
fresh start of the saved configuration, nothing is ever written, and the end is the proof that follows any way back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from changectl.core.cost import Span
from changectl.core.counting import counted
from changectl.core.declared.effort import TOO_SHORT
from changectl.core.errors import Refused
from changectl.core.history.events import CALIBRATION
from changectl.core.history.runs import CALIBRATED
from changectl.core.judging.baseline import BASELINE_INVALID, advice, unusable
from changectl.core.judging.judgement import Verdict
from changectl.core.lifecycle import Ending, Outcome
from changectl.core.trial.calibration import Calibration, Taught, blindest, looked_at, pairs_needed, taught, told
from changectl.core.trial.noise_learned import Learned
from changectl.core.trial.noise_model import NoiseModel
from changectl.core.trial.order import MOST_PAIRS, Times, length
from changectl.core.trial.precision import enough
from changectl.core.trial.price import guarded
from changectl.core.units import format_duration
from changectl.workflow.attempt import Attempt
from changectl.workflow.conditions import LoadPlan
from changectl.workflow.contact import Contact
from changectl.workflow.measure import Letter, Phase, Start, measure
from changectl.workflow.noise import alike, known_noise
from changectl.workflow.not_kept import NotKept
from changectl.workflow.restore import REVERTED
from changectl.workflow.rollout import require_others
from changectl.workflow.room import Room
from changectl.workflow.step_run import StepRun
from changectl.workflow.traffic import out_of_service
from changectl.workflow.trial import started_saved
from changectl.workflow.turns import Acts, Turns
from changectl.workflow.undo import handed_back

SOON = timedelta(days=7)  # what runs out by then is measured again already
CALIBRATED_ALREADY = "what is known of these hosts counts for another week: nothing to do; --pairs N measures anyway"


def to_measure(run: StepRun, calibration: Calibration) -> list[Contact]:
    """Every contact, those alone to take part that are the first of their kind and not known well enough.

    Raises:
        Refused: it is not known what a host is like, so nothing that is learned there could ever be used.
    """
    chosen: list[Contact] = []
    kinds: list[dict[str, Any]] = []
    load = _load(run)
    for contact in run.contacts:
        kind = alike(contact, load)
        if unknown := sorted(name for name, value in kind.items() if value is None):
            text = (
                f"{contact.target.name}: not known: {', '.join(unknown)}; what is learned there would hold for no trial"
            )
            raise Refused(f"{text}. changectl doctor tells what the host does not say", reason="host_unknown")
        like = kind in kinds
        kinds.append(kind)
        enough = calibration.by_need and not _pairs(run, contact, calibration)
        chosen.append(replace(contact, measured_alone=not (like or enough)))
    return chosen


def calibrate(run: StepRun, calibration: Calibration) -> Ending:
    """Measure one instance after the other; each is proven to run as it did before the next one is touched.

    Raises:
        NotKept: nothing can be learned from what was measured.
        ChangectlError, Interrupted: whatever else ended it.
    """
    _say_price(run, calibration)
    learned: list[str] = []
    for number, attempt in enumerate(run.attempts, 1):
        run.tools.interrupts.check()
        if number > 1:
            require_others(run, attempt)
        out_of_service(attempt)
        learned.append(_learn(run, attempt, calibration))
        end = handed_back(run, attempt)
        if end.outcome != REVERTED or end.still_out:
            text = "\n".join([*learned, end.detail])
            outcome = Outcome.KEPT if end.outcome == REVERTED else Outcome(end.outcome)
            return Ending(outcome, CALIBRATED, run.tools.secrets.redactor.text(text))
    return Ending(Outcome.KEPT, CALIBRATED, "\n".join(learned))


def _learn(run: StepRun, attempt: Attempt, calibration: Calibration) -> str:
    """Measure one instance and put on record what that teaches; returns it in words."""
    before, name = _known(run, attempt.contact), attempt.target.name
    found, phases = _measured(run, attempt, calibration)
    if found.why:
        why = "; ".join(part for part in (found.ended, found.why) if part)
        text = f"{name}: nothing was learned: {why}. What to do: calibrate while the host is quieter, or longer"
        raise NotKept(
            "inconclusive", f"{text}: changectl calibrate {attempt.target.service.service} --pairs {MOST_PAIRS}"
        )
    after = before.updated(found.spreads)
    sights = [blindest(model, *_figures(run, attempt.contact)) for model in (before, after)]
    text = f"{name}: with a standard trial, before: {told(sights[0])}; now: {told(sights[1])}"
    text += f". Left out: {found.left_out}" if found.left_out else ""
    text += f". It ended after {counted(phases, 'phase')}: {found.ended}" if found.ended else ""
    noise = Learned("", alike(attempt.contact, _load(run)), found.spreads, usual=found.usual).to_json()
    ways = {
        when: {"visible": sight.visible, "provable": sight.provable, "source": sight.source}
        for when, sight in zip(("before", "after"), sights, strict=True)
    }
    run.recorder.note(CALIBRATION, {"host": name, "phases": phases, "noise": noise, **ways, "text": text})
    return text


@dataclass
class _Loop:
    """The phases of one instance."""

    attempt: Attempt
    load: LoadPlan

    def measured(self, letter: Letter, number: int, start: Start) -> Phase:
        return measure(self.attempt, letter, self.load, start, number)

    def usable(self, phase: Phase) -> None:
        """A first phase that says nothing ends it before the others cost their starts in vain."""
        service = self.attempt.target.service
        reasons = unusable(
            phase.measurement,
            service_class=service.class_,
            guards=service.slo,
            expect=(),
            hard_events=phase.events,
            unread_conditions=phase.conditions.unknown(),
        )
        if reasons:
            text = f"{self.attempt.target.name}: what was measured says nothing: {'; '.join(map(str, reasons))}"
            raise NotKept(BASELINE_INVALID, f"{text}. What to do: {advice(reasons)}")


def _measured(run: StepRun, attempt: Attempt, calibration: Calibration) -> tuple[Taught, int]:
    """What the phases of one instance teach, and how many they were. Raises NotKept: they may not be taken together."""
    loop, plan = _Loop(attempt, _until_precise(run, attempt)), run.acceptance.plan
    acts = Acts(
        began={"A": lambda: started_saved(attempt)},
        proven=_never,
        measured=loop.measured,
        usable=loop.usable,
        checked=_never,
        judged=looked_at,
    )
    room = Room(plan.outage, calibration.seconds, "the calibration's")
    saved: Letter = "A"
    turns = Turns(attempt, acts, room, "revert", letters=[saved] * 2 * MOST_PAIRS)
    if calibration.seconds is None:
        turns.pairs = _pairs(run, attempt.contact, calibration) or MOST_PAIRS
    try:
        judgement = turns.judge(plan.effort)
    except NotKept as cause:
        if cause.reason != TOO_SHORT:
            raise
        took = format_duration(length(1, room.times).seconds, 3)
        text = f"{attempt.target.name}: one pair of phases takes {took}: give `--time` more than that"
        raise NotKept(TOO_SHORT, text) from cause
    phases, ended = turns.phases, turns.stopped.text if turns.stopped else ""
    if judgement.verdict is Verdict.INVALID:  # with the last phase; those before it may be taken together
        phases, ended = phases[:-1], "; ".join(str(reason) for reason in judgement.reasons)
    found = replace(taught(phases), ended=ended)
    if found.why and judgement.verdict is Verdict.INVALID:
        raise NotKept("invalid", f"{attempt.target.name}: nothing was learned: {ended}", judgement)
    return found, len(phases)


def _until_precise(run: StepRun, attempt: Attempt) -> LoadPlan:
    """The load as a trial there would send it: what is learned has to hold for phases that end as early."""
    load, service = _load(run), attempt.target.service
    noise = _known(run, attempt.contact)
    found = enough(load.sizes, service_class=service.class_, guards=service.slo, expect=(), noise=noise)
    return replace(load, enough=found)


def _never(*_: object) -> None:
    raise AssertionError("a calibration changes nothing")


def _say_price(run: StepRun, calibration: Calibration) -> None:
    """Minutes, starts and time out of service, before anything is started."""
    spent = run.tools.memory.spent(run.acceptance.plan.service, _load(run).facts())
    start, planned = spent.start_cost, _load(run).expected_seconds
    lately = Span.of(spent.phases)
    phase = lately.most if lately else planned or 0.0
    for attempt in run.attempts:
        times = Times(start.out.most if start else 0.0, phase)
        if calibration.seconds is not None:
            many = f"as many phases as fit into {format_duration(calibration.seconds)}, each with a start"
        else:
            pairs = _pairs(run, attempt.contact, calibration) or MOST_PAIRS
            many = f"{pairs} pairs: {2 * pairs} phases, each with a start"
            if start is not None and phase:
                down = 2 * pairs * times.load
                many += (
                    f"; about {format_duration(down + 2 * pairs * phase, 2)}, in {format_duration(down, 2)} of which"
                )
                many += " it is stopped or loading"
            else:
                many += "; how long a start takes is not known yet: no run has recorded one"
        now = told(blindest(_known(run, attempt.contact), *_figures(run, attempt.contact)))
        name = attempt.target.name
        run.tools.reporter.note(f"{name}: {many}. Nothing is changed. With a standard trial, now: {now}")


def _pairs(run: StepRun, contact: Contact, calibration: Calibration) -> int:
    """How many pairs a kind of host gets; 0: it is known well enough."""
    if calibration.pairs is not None or calibration.seconds is not None:
        return calibration.pairs or MOST_PAIRS
    return pairs_needed(known_noise(contact, _load(run), run.tools, SOON), *_figures(run, contact))


def _known(run: StepRun, contact: Contact) -> NoiseModel:
    return known_noise(contact, _load(run), run.tools)


def _figures(run: StepRun, contact: Contact) -> tuple[Sequence[str], Sequence[str]]:
    """The guarded figures, and the levels at which each is measured."""
    return guarded(contact.target.service.class_), list(_load(run).levels)


def _load(run: StepRun) -> LoadPlan:
    load = run.acceptance.load
    if load is None:
        raise ValueError("a calibration without a load measures nothing")
    return load
