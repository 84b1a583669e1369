"""What one start of each configuration tells of the answers: gross harm among expected ones, and no more.

How much the texts of two starts differ anyway nobody knows then, so that a difference is shown and not judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from changectl.core.judging import harm
from changectl.core.judging.judgement import Row, State
from changectl.core.judging.quality import (
    DISAGREEMENT,
    GROSS,
    LEAST_PROMPTS,
    MAY_CHANGE,
    ONE_START,
    WRONG,
    common,
    sign_test,
    too_few,
)
from changectl.core.measuring.answers import Answers
from changectl.core.measuring.measured import Measurement
from changectl.core.measuring.metrics import Guard, Metric
from changectl.core.units import format_points

Known = Mapping[str, Answers]


def quality_rows(before: Measurement, after: Measurement, guards: Sequence[Guard], *, required: bool) -> Iterator[Row]:
    """The rows of quality; none: the workload has no quality prompts, and none are needed.

    Args:
        before: the phase on the saved configuration.
        after: the phase on the new one.
        guards: the limits in force; one on a figure of quality takes the place of its rule here.
        required: the changed parameter may change answers, so that without a judged figure the verdict stays open.
    """
    old, new = before.answers, after.answers
    prompts = common([old, new])
    graded = [prompt for prompt in prompts if old[prompt].wrong is not None]
    plain = [prompt for prompt in prompts if prompt not in set(graded)]
    named = {guard.ref.metric.name: guard for guard in guards}
    judged = len(graded) >= LEAST_PROMPTS
    if judged:
        yield _wrong(graded, old, new, named.get(WRONG.name))
    elif graded or WRONG.name in named:
        yield _blind(WRONG, "not measurable", too_few(len(graded)), gap=WRONG.name in named)
    guard = named.get(DISAGREEMENT.name)
    if plain or guard is not None:
        yield _differing(plain, old, new, guard, gap=required and not judged)
    elif required and not judged:
        yield _blind(DISAGREEMENT, "no data", MAY_CHANGE, gap=True)


def _wrong(prompts: Sequence[str], old: Known, new: Known, guard: Guard | None) -> Row:
    shares = [[(one[prompt].wrong or 0) / one[prompt].n for prompt in prompts] for one in (old, new)]
    before, after = map(fmean, shares)
    if guard is not None:
        return _row(WRONG, (before, after), str(guard), "within" if guard.limit.holds(after) else "breach")
    p = sign_test([now - was for was, now in zip(*shares, strict=True)])
    worse = after - before >= GROSS and p < harm.FISHER_P
    limit = f"less than {format_points(GROSS).lstrip('+')} more, or p at least {harm.FISHER_P:g}"
    return _row(WRONG, (before, after), limit, "breach" if worse else "within", f"{len(prompts)} prompts, p = {p:.2g}")


def _differing(prompts: Sequence[str], old: Known, new: Known, guard: Guard | None, *, gap: bool) -> Row:
    if len(prompts) < LEAST_PROMPTS:
        return _blind(DISAGREEMENT, "not measurable", too_few(len(prompts)), gap=gap or guard is not None)
    after = fmean(new[prompt].differ(old[prompt]) for prompt in prompts)
    if guard is not None:
        return _row(DISAGREEMENT, (None, after), str(guard), "within" if guard.limit.holds(after) else "breach")
    return _row(DISAGREEMENT, (None, after), "none", "not judged", ONE_START, gap=gap)


def _blind(metric: Metric, state: State, note: str, *, gap: bool) -> Row:
    return _row(metric, (None, None), "none", state, note, gap=gap)


def _row(
    metric: Metric, figures: tuple[float | None, float | None], limit: str, state: State, note: str = "", *,
    gap: bool = False,
) -> Row:  # fmt: skip
    return Row(metric.name, metric.unit, None, *figures, None, limit, state, note, gap)
