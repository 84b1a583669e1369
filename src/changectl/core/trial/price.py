"""What an effort costs and what it can see, said before anything starts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from changectl.core.judging.harm import FACTOR, LATENCIES, THROUGHPUTS
from changectl.core.measuring.metrics import METRICS
from changectl.core.trial.estimate import quantile, variance_factor
from changectl.core.trial.evidence import HARM_PER_LOOK, KEEP_PER_LOOK, POWER
from changectl.core.trial.noise import LEAST_PAIRS
from changectl.core.trial.noise_model import AT, Noise, NoiseModel, Source, Spread
from changectl.core.trial.order import Length, Times, length
from changectl.core.units import format_duration, format_share


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen of figures with the same noise.

    Attributes:
        figures: their names (`ttft_user_p50`).
        source: whether that noise is this host's own.
        visible: the smallest regression that is found four times out of five, as a share; what is within its margin is
            never called one.
        provable: the smallest margin that a figure which did not change is shown to keep four times out of five; None:
            so few pairs show gross harm alone.
    """

    figures: tuple[str, ...]
    source: Source
    visible: float
    provable: float | None


@dataclass(frozen=True, slots=True)
class Price:
    """An effort beforehand."""

    length: Length
    sights: tuple[Sight, ...]

    def sentences(self) -> list[str]:
        """For people."""
        own = self.length
        many = "1 pair" if own.pairs == 1 else f"{own.pairs} pairs"
        times = f"at most {format_duration(own.seconds, 3)}, in {format_duration(own.down, 3)} of which"
        head = f"{many}: {own.phases} phases and at most {own.starts} starts, {times} the service is stopped or loading"
        return [f"{head}. It ends as soon as the verdict is clear.", *map(_told, self.sights)]


def guarded(service_class: str) -> tuple[str, ...]:
    """The figures of each level that such a service guards by default, as rows call them."""
    own = [METRICS[name] for name in (*LATENCIES, *THROUGHPUTS)]
    return tuple(
        f"{metric.name}_p50" if metric.statistics else metric.name
        for metric in own
        if metric.margin(service_class) is not None
    )


def price(
    pairs: int, times: Times, noise: NoiseModel, figures: Sequence[str], guards: int, levels: Sequence[str] = ()
) -> Price:
    """The price of so many pairs.

    Args:
        pairs: of the effort.
        times: measured or declared.
        noise: what is known of the host.
        figures: the names of the guarded figures.
        guards: how many guards there are: the figures, at each level.
        levels: their names; what can be seen of a figure is told for the noisiest of them.
    """
    alike: dict[tuple[Spread, Source], list[str]] = {}
    for figure in figures:
        own = _noisiest(noise, figure, levels)
        alike.setdefault((own.spread, own.source), []).append(figure)
    sights = (
        Sight(tuple(names), source, *_seen(pairs, Noise(spread, source), guards))
        for (spread, source), names in alike.items()
    )
    return Price(length(pairs, times), tuple(sights))


def _noisiest(noise: NoiseModel, figure: str, levels: Sequence[str]) -> Noise:
    own = [noise.of(f"{figure}{AT}{level}") for level in levels] or [noise.of(figure)]
    return max(own, key=lambda one: (one.source == "uncalibrated", one.spread.variance))


def _seen(pairs: int, noise: Noise, guards: int) -> tuple[float, float | None]:
    if pairs < LEAST_PAIRS[noise.source]:
        return FACTOR - 1, None
    return smallest_visible(pairs, noise.spread, guards), smallest_provable(pairs, noise.spread)


def smallest_visible(pairs: int, spread: Spread, guards: int) -> float:
    """The smallest regression, as a share, that so many pairs tell from none, as one of so many guards."""
    return math.expm1(_reach(pairs, spread, HARM_PER_LOOK / max(1, guards)))


def smallest_provable(pairs: int, spread: Spread) -> float:
    """The smallest margin, as a share, within which an unchanged figure is shown to be."""
    return math.expm1(_reach(pairs, spread, KEEP_PER_LOOK))


def _reach(pairs: int, spread: Spread, alpha: float) -> float:
    """How far an effect has to be from a hypothesis to be told from it, with the power that is promised."""
    df = spread.df + max(0, 2 * pairs - 3)
    return (quantile(1 - alpha, df) + quantile(POWER, df)) * spread.deviation * math.sqrt(variance_factor(pairs))


def _told(sight: Sight) -> str:
    where, known = ", ".join(sight.figures), "" if sight.source == "calibrated" else "; uncalibrated"
    text = f"A regression of {format_share(sight.visible, 2)} or more would be found 4 times out of 5"
    if sight.provable is None:
        return f"So few pairs see gross harm alone: {format_share(sight.visible, 2)} or more ({where}{known})."
    shown = f"an unchanged figure would be shown to be within {format_share(sight.provable, 2)}"
    return f"{text}, and {shown} ({where}{known})."
