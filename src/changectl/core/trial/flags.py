"""What is shown with a trial's verdict whatever it is: failures, unequal work, phases that went their own way."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

from changectl.core.judging import flagging, harm
from changectl.core.judging.judgement import Reason
from changectl.core.measuring.metrics import METRICS
from changectl.core.trial.guards import Ground
from changectl.core.trial.noise_model import PRIOR
from changectl.core.trial.phases import TrialPhase, level_names, of_letter, pooled_level
from changectl.core.units import format_share, format_value

OUTLIER = "outlier"  # the code of a phase that was unlike the others


def flags_of(ground: Ground, figures: Sequence[str]) -> tuple[Reason, ...]:
    """The flags of a trial; `figures` are those that were judged with the host's noise."""
    phases = ground.phases
    flags = [flagging.unequal(text) for text in ground.unequal.values()]
    for letter, words in (("A", "with the saved configuration"), ("B", "with the new configuration")):
        own = [phase for phase in phases if phase.letter == letter]
        for name in level_names(own):
            flags += flagging.of_level(pooled_level(own, name), words)
    flags += flagging.unread(sorted({name for phase in phases for name in phase.conditions.unknown()}))
    flags += dict.fromkeys(note for phase in phases for note in phase.observations)
    flags += outliers(phases).values()
    return (*flags, *_not_fresh(phases), *_uncalibrated(ground, figures))


def outliers(phases: Sequence[TrialPhase]) -> dict[int, Reason]:
    """The phases that were unlike the others with their configuration, by number."""
    return {phase.number: found for phase in phases if (found := _outlier(phase, phases))}


def _outlier(phase: TrialPhase, phases: Sequence[TrialPhase]) -> Reason | None:
    """A phase that was worse than its like by the factor of gross harm: the figure that was worst, in times."""
    others = [other for other in of_letter(phases, phase.letter) if other is not phase]
    worst = max(_factors(phase, others), default=None)
    if worst is None or worst[0] < harm.FACTOR:
        return None
    factor, text = worst
    return Reason(OUTLIER, f"{phase} was unlike the others with its configuration: {text}, {factor:.2g} times worse")


def _factors(phase: TrialPhase, others: Sequence[TrialPhase]) -> Iterator[tuple[float, str]]:
    for level in phase.measurement.levels:
        for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
            metric, own = METRICS[name], level.value(name)
            like = [other.measurement.level(level.name) for other in others]
            known = [value for one in like if one is not None and (value := one.value(name)) is not None]
            usual = median(known) if known else 0.0
            if not own or not usual or math.isinf(usual) or metric.worse_by(usual, own) <= metric.floor:
                continue
            factor = own / usual if metric.better == "lower" else usual / own
            figures = f"{format_value(own, metric.unit)} instead of {format_value(usual, metric.unit)}"
            yield factor, f"{name} at {level.name} {figures}"


def _not_fresh(phases: Sequence[TrialPhase]) -> list[Reason]:
    old = [str(phase) for phase in phases if not phase.fresh]
    text = f"the service was not started for {', '.join(old)}: an old process and a new one are no fair comparison"
    return [Reason("not_fresh", text)] if old else []


def _uncalibrated(ground: Ground, figures: Sequence[str]) -> list[Reason]:
    names = sorted(set(figures))
    unknown = [name for name in names if ground.noise.model.of(name).source == "uncalibrated"]
    if not unknown:
        return []
    which = "all figures" if unknown == names else ", ".join(unknown)
    text = f"uncalibrated: this host's own noise is not known yet, so {format_share(PRIOR.deviation)} between phases"
    return [Reason("uncalibrated", f"{text} was taken to begin with ({which})")]
