"""May two measurements be compared at all? And was the work in them the same?"""

from __future__ import annotations

from collections.abc import Sequence

from changectl.core.conditions import Difference, must_be_known
from changectl.core.judgement import HardEvent, Reason
from changectl.core.measured import LevelMeasurement, Measurement
from changectl.core.units import format_duration, format_share

CACHE_TOLERANCE = 0.02  # share of input tokens
INPUT_TOLERANCE = 0.02
OUTPUT_BAND = (0.9, 1.1)
FINISH_SHARE = 0.02
FINISH_REQUESTS = 2
LAG_SECONDS = 0.010
LAG_SHARE = 0.2  # of the time to first token: below it, lateness cannot make a factor of 1.5


def not_comparable(
    before: Measurement,
    after: Measurement,
    undeclared: Sequence[Difference],
    hard_events: Sequence[HardEvent],
    unread: Sequence[str] = (),
) -> list[Reason]:
    """Why the two must not be compared; empty: they may. `unread` names the conditions that a phase lacks."""
    reasons = [Reason("conditions_differ", f"undeclared difference: {difference}") for difference in undeclared]
    reasons += [
        Reason("conditions_unknown", f"not known in both measurements: {name}")
        for name in unread
        if must_be_known(name)
    ]
    for name, measurement in (("before", before), ("after", after)):
        reasons += [
            Reason("measurement_failed", f"the measurement {name}: {problem}") for problem in measurement.invalid
        ]
    reasons += [
        Reason("baseline_disturbed", f"during the baseline: {event.text}")
        for event in hard_events
        if event.phase == "A"
    ]
    names = [[level.name for level in measurement.levels] for measurement in (before, after)]
    if names[0] != names[1]:
        reasons.append(Reason("levels_differ", f"levels before: {', '.join(names[0])}; after: {', '.join(names[1])}"))
        return reasons
    for old, new in zip(before.levels, after.levels, strict=True):
        reasons += _level_reasons(old, new)
    return reasons


def _level_reasons(old: LevelMeasurement, new: LevelMeasurement) -> list[Reason]:
    reasons = []
    if old.cache_hit is not None and new.cache_hit is not None and abs(new.cache_hit - old.cache_hit) > CACHE_TOLERANCE:
        hits = f"{format_share(old.cache_hit)} before, {format_share(new.cache_hit)} after"
        reasons.append(Reason("cache_state_differs", f"input tokens from a cache at {old.name}: {hits}"))
    ratio = work_ratio(old, new, 0)
    if ratio is not None and abs(ratio - 1) > INPUT_TOLERANCE:
        text = f"the same prompts have {ratio:.2f} times the input tokens at {old.name}"
        reasons.append(Reason("unequal_input", text))
    for phase, level in (("before", old), ("after", new)):
        if is_late(level, LAG_SECONDS, LAG_SHARE):
            text = f"{phase}, at {level.name}: it sent {format_duration(level.lag_p99 or 0)} late (P99)"
            reasons.append(Reason("generator_late", f"the load generator did not keep up {text}"))
    return reasons


def is_late(level: LevelMeasurement, seconds: float, share: float) -> bool:
    """Whether the generator's own lateness is beyond `seconds` and beyond `share` of the median time to first token."""
    first = level.value("ttft_user", "p50")
    return level.lag_p99 is not None and level.lag_p99 > max(seconds, share * (first or 0.0))


def work_ratio(old: LevelMeasurement, new: LevelMeasurement, index: int) -> float | None:
    """Input (index 0) or output (1) tokens after / before, per answer, over the prompts that both answered.

    Per answer and prompt, because a slower phase of fixed length gets through fewer prompts. None: not counted.
    """
    shared = sorted(old.per_prompt.keys() & new.per_prompt.keys())
    total = sum(old.per_prompt[prompt][index] for prompt in shared)
    return sum(new.per_prompt[prompt][index] for prompt in shared) / total if total else None


def unequal_work(old: LevelMeasurement, new: LevelMeasurement) -> str | None:
    """Why whole answers and throughput of the two levels must not be compared; None: the work was the same."""
    ratio = work_ratio(old, new, 1)
    if ratio is not None and not OUTPUT_BAND[0] <= ratio <= OUTPUT_BAND[1]:
        return f"the same prompts got {ratio:.2f} times the output tokens at {old.name}"
    if not old.ok or not new.ok:
        return None
    for reason in sorted(old.finish.keys() | new.finish.keys()):
        # Rounded: two of fifty must not become more than two by the last bit of a division.
        shift = round(abs(new.finish.get(reason, 0) / new.ok - old.finish.get(reason, 0) / old.ok), 9)
        if shift > FINISH_SHARE and round(shift * min(old.ok, new.ok), 6) > FINISH_REQUESTS:
            return f'answers that end with "{reason}" changed by {format_share(shift)} at {old.name}'
    return None
