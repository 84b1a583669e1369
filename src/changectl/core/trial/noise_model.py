"""How much a figure differs from phase to phase although nothing was changed: restarts, neighbours, clocks.

This noise between phases, not the number of requests, decides what a trial can see. A host is calibrated by the trials
on it and on its like; before that a prior stands in, with so few degrees of freedom that the trial's own figures soon
outweigh it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Source = Literal["calibrated", "uncalibrated"]

AT = " at "  # between a figure and its level
ENOUGH = 10.0  # degrees of freedom from which on a host's own figures stand alone


@dataclass(frozen=True, slots=True)
class Spread:
    """A variance of the logarithm of a phase's figure, and how many degrees of freedom it was estimated with.

    Raises:
        ValueError: not finite, or negative.
    """

    variance: float
    df: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.variance) and math.isfinite(self.df) and self.variance >= 0 and self.df >= 0):
            raise ValueError(f"a variance of {self.variance} with {self.df} degrees of freedom is none")

    @property
    def deviation(self) -> float:
        """The standard deviation; 0.01 is about one percent."""
        return math.sqrt(self.variance)


def pooled(*spreads: Spread) -> Spread:
    """One estimate from several, each weighed by its degrees of freedom; nothing at all is 0 with 0."""
    df = math.fsum(spread.df for spread in spreads)
    if not df:
        return Spread(0.0, 0.0)
    return Spread(math.fsum(spread.variance * spread.df for spread in spreads) / df, df)


@dataclass(frozen=True, slots=True)
class Noise:
    """What a trial assumes about one figure before it begins."""

    spread: Spread
    source: Source


PRIOR = Spread(0.01**2, 3.0)  # 1 % between phases; taken as known instead, it brings false alarms on shared hosts


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """What is known of a host and its like.

    Attributes:
        measured: figure -> its spread between phases of one configuration; of one level (`ttft_user_p50 at peak`), or
            of all alike (`ttft_user_p50`).
    """

    measured: Mapping[str, Spread] = field(default_factory=dict)

    def of(self, figure: str) -> Noise:
        """The noise of a figure: its own where enough is known, else the prior with what little there is."""
        own = self.own(figure) or Spread(0.0, 0.0)
        if own.df >= ENOUGH:
            return Noise(own, "calibrated")
        return Noise(pooled(PRIOR, own), "uncalibrated")

    def own(self, figure: str) -> Spread | None:
        """What was measured of a figure, at its level or at all alike; None: nothing was."""
        return self.measured.get(figure) or self.measured.get(figure.partition(AT)[0])

    def updated(self, spreads: Mapping[str, Spread]) -> NoiseModel:
        """With what one more trial showed, pooled."""
        names = sorted(self.measured.keys() | spreads.keys())
        nothing = Spread(0.0, 0.0)
        return NoiseModel(
            {name: pooled(self.measured.get(name, nothing), spreads.get(name, nothing)) for name in names}
        )

    def to_json(self) -> dict[str, Any]:
        """Strict JSON values."""
        measured = {name: {"variance": one.variance, "df": one.df} for name, one in sorted(self.measured.items())}
        return {"measured": measured}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> NoiseModel:
        """What `to_json` wrote.

        Raises:
            ValueError: not the shape of a model.
        """
        try:
            return cls({name: Spread(**one) for name, one in raw["measured"].items()})
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not the shape of a noise model: {error!r}") from error


NOTHING_KNOWN = NoiseModel()
