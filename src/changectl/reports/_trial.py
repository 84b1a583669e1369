"""A trial in words: what it cost, what its bounds mean, and how one without a verdict goes on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from changectl.core.counting import counted
from changectl.core.history.events import items_of, number_of, text_of
from changectl.core.history.reading import StepStory
from changectl.core.history.runs import RunSummary
from changectl.core.measuring.metrics import parse_metric
from changectl.core.trial.order import MOST_PAIRS
from changectl.core.units import SECONDS, SHARE, format_duration, format_points, format_share
from changectl.reports import _words as words
from changectl.reports._blocks import Command

_WORDS = {SECONDS: ("slower", "faster"), SHARE: ("more", "less")}
_RATES = ("lower", "higher")  # of what is better when it is more


def cost(step: StepStory) -> str:
    """Phases, starts and minutes of a step that measured something; empty: it did not."""
    phases, took = len(step.measurements), _seconds(step)
    if not phases or took is None:
        return ""
    starts = sum(body.get("started") is True for body in step.ready)
    return f"{counted(phases, 'phase')}, {counted(starts, 'start')}, {words.seconds(round(took))}"


def _seconds(step: StepStory) -> float | None:
    begun, ended = step.summary.started_at, step.summary.closed_at
    if not begun or not ended:
        return None
    return (datetime.fromisoformat(ended) - datetime.fromisoformat(begun)).total_seconds()


def going_on(run: RunSummary, step: StepStory) -> Command | None:
    """The command that goes on with a trial which ended without a verdict, and what it costs; None: none can."""
    last = step.trials[-1] if step.trials else {}
    looks, phases, took = items_of(last, "looks"), len(step.measurements), _seconds(step)
    if text_of(last, "verdict") != "inconclusive" or not looks or run.outcome != "reverted" or len(run.steps) > 1:
        return None
    more, left = number_of(last, "more_pairs"), MOST_PAIRS - max(looks)
    if more is None or not 1 <= more <= left:
        return None
    pairs = "1 more pair" if more == 1 else f"{more:g} more pairs"
    about = f", about {format_duration(2 * more * took / phases, 2)}" if phases and took else ""
    return Command(f"changectl extend {run.run}", f"go on with this trial: {pairs}{about}")


def bounds(row: Mapping[str, Any]) -> str:
    """Between what the true change lies, in plain words; empty: the row has no bounds.

    The bounds are those of one look: each is exceeded by chance once in 120 times.
    """
    low, high = number_of(row, "low"), number_of(row, "high")
    try:
        metric = parse_metric(text_of(row, "metric")).metric
    except ValueError:
        return ""
    if low is None or high is None:
        return ""
    worst, best = (high, low) if metric.better == "lower" else (-low, -high)
    worse, better = _WORDS.get(metric.unit, _RATES) if metric.better == "lower" else _RATES
    size = _points if metric.unit == SHARE else _share
    if best > 0:
        return f"between {size(best)} and {size(worst)} {worse}"
    if worst <= 0:
        return f"between {size(-worst)} and {size(-best)} {better}"
    return f"at most {size(worst)} {worse}, at best {size(-best)} {better}"


def _share(size: float) -> str:
    return format_share(size, 2)


def _points(size: float) -> str:
    return format_points(size).lstrip("+")
