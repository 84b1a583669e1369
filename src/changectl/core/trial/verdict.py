"""The verdict on a trial of several pairs, at each of its looks.

REGRESSED takes evidence and size; KEEP takes the bound of every guard within its limit, and the expected gain. Between
the two the trial goes on. What is missing never passes, and gross harm ends it at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from changectl.core.judging import quality
from changectl.core.judging.gross_harm import require_class
from changectl.core.judging.hard_harm import at_once
from changectl.core.judging.judgement import Judgement, Reason, Row, Verdict
from changectl.core.judging.quality import quality_of
from changectl.core.measuring.metrics import Expectation, Guard
from changectl.core.trial.end import Evidence, Look, concluded, going_on
from changectl.core.trial.evidence import HARM_PER_LOOK, PER_LOOK, holm
from changectl.core.trial.flags import flags_of
from changectl.core.trial.gross import gross_harm
from changectl.core.trial.guards import Ground, Held
from changectl.core.trial.noise import noise_of
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel
from changectl.core.trial.phases import (
    TrialPhase,
    events_of,
    not_comparable_phases,
    of_letter,
    pairs,
    pairs_done,
    unequal_levels,
)
from changectl.core.trial.rows import guards_of
from changectl.core.trial.targets import targets_of

COUNTED = ("failures", *quality.NAMES)  # what is judged by counts, and not by the noise between phases
NOT_FRESH = "the service was not started for every phase"


def judge_trial(
    phases: Sequence[TrialPhase],
    schedule: Sequence[int],
    *,
    service_class: str = "interactive",
    slo: Sequence[Guard] = (),
    accept: Sequence[Guard] = (),
    expect: Sequence[Expectation] = (),
    declared: Collection[str] = (),
    noise: NoiseModel = NOTHING_KNOWN,
    changes_answers: bool = False,
) -> Judgement:
    """Judge all phases so far: whether the trial goes on, and what it says if not.

    Args:
        phases: in the order in which they ran. It may be asked after any of them; the evidence counts at looks alone.
        schedule: the pairs after which there is a look (`trial_order.looks`); after the last one the trial ends.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        slo: absolute limits of the service; they take the place of the default margin of their metric.
        accept: absolute limits of the plan, likewise; where both name a metric, both must hold.
        expect: the gains that the plan expects; none: it is neutral, and kept when nothing got worse.
        declared: the names under which the one declared change may show in the conditions.
        noise: what is known of the host.
        changes_answers: whether the changed parameter may change answers, so that they have to be judged.

    Raises:
        ValueError: an unknown class, phases out of order, or more of them than the schedule has.
    """
    require_class(service_class)
    look, guards = _look(phases, schedule), (*slo, *accept)
    ground = Ground(phases, noise_of(phases, noise), unequal_levels(phases))
    if invalid := not_comparable_phases(phases, declared):
        return Judgement(Verdict.INVALID, tuple(invalid), (), flags_of(ground, ()), "revert")
    if not of_letter(phases, "A") or not of_letter(phases, "B"):
        return replace(going_on(None, look), flags=flags_of(ground, ()))
    held = [*guards_of(ground, service_class, guards), *quality_of(phases, guards, required=changes_answers)]
    targets = [replace(target, row=_waiting(target.row, look)) for target in targets_of(expect, ground)]
    rows = _rows(held, gross_harm(phases, service_class, guards), look)
    evidence = Evidence(rows, held, targets, *_at_once(phases), ground.unequal)
    flags = flags_of(ground, [one.row.place for one in held if one.decided_by and one.row.metric not in COUNTED])
    return replace(concluded(evidence, look), rows=(*rows, *(target.row for target in targets)), flags=flags)


def _look(phases: Sequence[TrialPhase], schedule: Sequence[int]) -> Look:
    numbers, fresh = [phase.number for phase in phases], all(phase.fresh for phase in phases)
    last = max(schedule, default=0)
    if not numbers or sorted(set(numbers)) != numbers or numbers[0] < 1 or numbers[-1] > 2 * last:
        raise ValueError(f"phases {numbers} are not those of a trial with {last} pairs")
    done = pairs_done(phases)
    due = done in schedule and numbers[-1] == 2 * done
    waits = "" if due else "no look is due"
    if due and done == 1:
        # However steady the host was when it was calibrated: a drift of today's is in B alone.
        waits = "one pair cannot tell a drift of the host from an effect"
    return Look(done, last, due, waits if fresh else NOT_FRESH, fresh)


def _rows(held: Sequence[Held], gross: Sequence[Row], look: Look) -> list[Row]:
    """Every guard with its state, in the order of `held`; then gross harm at places where no guard has a row."""
    adjusted = iter(holm([one.evidence for one in held if one.evidence is not None]))
    rows = [_row(one, None if one.evidence is None else next(adjusted), look) for one in held]
    own = {(row.metric, row.level): index for index, row in enumerate(rows)}
    for row in gross:
        index = own.get((row.metric, row.level))
        if index is None:
            rows.append(row)
        else:
            rows[index] = row
    return rows


def _row(one: Held, adjusted: float | None, look: Look) -> Row:
    if adjusted is None:
        return one.row
    row = _waiting(replace(one.row, evidence=adjusted, note=one.waits or one.row.note), look)
    if look.waits or one.waits:
        return row
    if one.beyond and adjusted < (PER_LOOK if row.metric in COUNTED else HARM_PER_LOOK):
        return replace(row, state="breach")
    return replace(row, state="clear") if one.clear else row


def _waiting(row: Row, look: Look) -> Row:
    """A figure whose evidence does not count as yet."""
    if not look.waits or row.state not in ("open", "gain", "flat"):
        return row
    return replace(row, note=look.waits, state="open" if look.fresh else "not judged")


def _at_once(phases: Sequence[TrialPhase]) -> tuple[list[Reason], list[Reason]]:
    """What needs no statistics, phase by phase of the new configuration: harm, and gaps."""
    harms: list[Reason] = []
    gaps: list[Reason] = []
    for old, new in pairs(phases):
        found = at_once(old.measurement, new.measurement, events_of(new))
        for kind, reasons in zip((harms, gaps), found, strict=True):
            kind += [Reason(reason.code, f"{new}: {reason.text}") for reason in reasons]
    return harms, gaps
