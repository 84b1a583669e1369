"""Answers that took far longer than the others of their phase: what a percentile tells badly, and a count well.

Where one request in twenty becomes three times as slow, the P95 of a phase lies on either side of that step by chance.
It differs from phase to phase by more than any noise then, and so hides the very harm. How many answers took more than
twice the median is a count with exact evidence; and what makes a whole phase slower moves its median as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.metrics import MetricRef
from changectl.core.measuring.proportions import Count, design_effect, total
from changectl.core.measuring.statistics import FAR
from changectl.core.trial.failures import Failures
from changectl.core.trial.guards import Held
from changectl.core.trial.phases import TrialPhase, of_letter, pairs_done
from changectl.core.units import format_share

SIZE = 0.02  # share by which more answers are far slower; less is no harm
LEAST = 3  # pairs
DOUBTFUL = 0.05  # so improbable by chance that a figure is not called clear before there are as many


def with_tail(held: Held, ref: MetricRef, phases: Sequence[TrialPhase]) -> Held:
    """A guard on a tail, with the count's evidence where more answers are far slower now: that needs no known noise."""
    found = far_slower(ref, phases)
    if held.evidence is None or found is None or found.more < SIZE:
        return held
    evidence = found.p_worse()
    shares = [format_share(count.share) for count in (found.after, found.before)]
    note = f"{shares[0]} of the answers took more than {FAR:g} times the median, {shares[1]} before"
    if pairs_done(phases) < LEAST:
        # Slow answers may come in bursts, which two phases can have by chance: neither harm yet, nor clear.
        return replace(held, waits=f"{note}: that counts after {LEAST} pairs") if evidence < DOUBTFUL else held
    if not _in_every_phase(ref, phases) or (held.beyond and held.evidence <= evidence and not held.waits):
        return held
    return replace(held, row=replace(held.row, note=note), evidence=evidence, beyond=True, waits="")


def _in_every_phase(ref: MetricRef, phases: Sequence[TrialPhase]) -> bool:
    """Whether the new configuration has more of them in each of its phases than the saved one has in any.

    What counts as evidence is a phase, not an answer: one burst makes many answers slow at once.
    """
    before, after = ([count.share or 0.0 for count in group] for group in _groups(ref, phases))
    return bool(before and after) and min(after) > max(before)


def _groups(ref: MetricRef, phases: Sequence[TrialPhase]) -> list[list[Count]]:
    groups = []
    for letter in ("A", "B"):
        levels = [phase.measurement.level(ref.level or "") for phase in of_letter(phases, letter)]
        groups.append([count for level in levels if level and (count := _count(ref.metric.name, level))])
    return groups


def far_slower(ref: MetricRef, phases: Sequence[TrialPhase]) -> Failures | None:
    """The shares of answers that took more than twice the median of their phase; None: nobody counted."""
    groups = _groups(ref, phases)
    before, after = (total(group) for group in groups)
    if not before.n or not after.n:
        return None
    return Failures(before, after, design_effect(*([group] for group in groups)))


def _count(metric: str, level: LevelMeasurement) -> Count | None:
    if metric not in level.far:
        return None
    return Count(level.far[metric], level.ok - level.missing.get(metric, 0) - level.undefined.get(metric, 0))
