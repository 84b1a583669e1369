"""What past trials found out about noise, and which of it a new one may take for its own host's.

Every trial shows how much its figures differ from phase to phase beside the change. That holds for hosts, engines and
loads like its own, for as long as they stay as they were.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from changectl.core.judging.judgement import Judgement, Verdict
from changectl.core.measuring.metrics import parse_metric
from changectl.core.trial.flags import OUTLIER
from changectl.core.trial.noise import spreads_of
from changectl.core.trial.noise_model import NOTHING_KNOWN, NoiseModel, Spread
from changectl.core.trial.phases import TrialPhase, of_letter

LASTS = timedelta(days=30)  # neighbours, dust and disks change without any name for it


@dataclass(frozen=True, slots=True)
class Learned:
    """What one trial found out.

    Attributes:
        at: when, as the journal writes times.
        alike: what has to be the same where it is to hold: hardware, kernel, driver, engine, model, load.
        spreads: figure -> its spread from phase to phase.
        run: the run that it is of.
        usual: figure -> how large it was with the saved configuration.
    """

    at: str
    alike: Mapping[str, Any]
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    run: str = ""
    usual: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values, without what the record says of its events anyway."""
        return {"alike": dict(self.alike), "usual": dict(self.usual), **NoiseModel(self.spreads).to_json()}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any], at: str, run: str) -> Learned:
        """What `to_json` wrote.

        Raises:
            ValueError: not the shape of it.
        """
        model = NoiseModel.from_json(raw)
        try:
            usual = {name: float(value) for name, value in raw.get("usual", {}).items()}  # older programs wrote none
            return cls(at, dict(raw["alike"]), model.measured, run, usual)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"learned noise does not say where it holds: {error!r}") from error


def tells_noise(judgement: Judgement) -> bool:
    """Whether a trial's phases differ by noise alone, beside one effect.

    What must not be compared tells nothing. A change that does harm need not do it in every phase alike, and a phase
    unlike all others is no noise: either would make a host look so unsteady that harm later hides in it.
    """
    odd = any(flag.code == OUTLIER for flag in judgement.flags)
    return not odd and judgement.verdict not in (Verdict.INVALID, Verdict.REGRESSED)


def learned(phases: Sequence[TrialPhase], alike: Mapping[str, Any], at: str, run: str) -> Learned | None:
    """What a trial found out; None: it has too few phases to tell noise from effect."""
    spreads = spreads_of(phases)
    return Learned(at, alike, spreads, run, usual_of(phases, spreads)) if spreads else None


def usual_of(phases: Sequence[TrialPhase], names: Iterable[str]) -> dict[str, float]:
    """How large these figures are with the saved configuration: the median of its phases."""
    saved = [phase.measurement for phase in of_letter(phases, "A")]
    found = {name: [value for one in saved if (value := one.value(parse_metric(name))) is not None] for name in names}
    return {name: median(values) for name, values in found.items() if values and all(map(math.isfinite, values))}


def known(found: Iterable[Learned], alike: Mapping[str, Any], now: str) -> NoiseModel:
    """What is known of a host's noise before a trial.

    Args:
        found: what earlier trials found out; of a trial that went on in a later run, that of the later run alone.
        alike: of the host, the engine and the load that the trial is about. Where one of it is None (not known),
            nothing is taken over.
        now: the time.
    """
    model = NOTHING_KNOWN
    for one in _holding(found, alike, now):
        model = model.updated(one.spreads)
    return model


def usually(found: Iterable[Learned], alike: Mapping[str, Any], now: str) -> dict[str, float]:
    """How large the figures of such a host were lately; the latest counts."""
    return {name: value for one in _holding(found, alike, now) for name, value in one.usual.items()}


def _holding(found: Iterable[Learned], alike: Mapping[str, Any], now: str) -> Iterator[Learned]:
    if None in alike.values():
        return
    since = datetime.fromisoformat(now) - LASTS
    for one in found:
        if dict(one.alike) == dict(alike) and datetime.fromisoformat(one.at) >= since:
            yield one
