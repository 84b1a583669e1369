"""May two measurements be compared at all? And was the work in them the same?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from changectl.core.judging.conditions import Difference, must_be_known
from changectl.core.judging.exactness import LAG_SECONDS, LAG_SHARE, shortcomings
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.measured import LevelMeasurement, Measurement
from changectl.core.measuring.records import CLIENT_LIMIT
from changectl.core.units import RATE, format_duration, format_share, format_value

CACHE_TOLERANCE = 0.02  # share of input tokens
INPUT_TOLERANCE = 0.02
OUTPUT_BAND = (0.9, 1.1)
FINISH_SHARE = 0.02
FINISH_REQUESTS = 2
LATE = "generator_late"
LEAST_RATE = 0.95  # of an open level's planned requests per second
LEAST_STREAMS = 2 / 3  # of a closed level's streams, under way at a time: below it, that alone makes a factor of 1.5
LEAST_TIME = 0.95  # of the time that a closed level was to last, or that it took to be precise


def conditions_apart(undeclared: Sequence[Difference], unread: Sequence[str]) -> list[Reason]:
    """What more than the declared change may lie between two phases: what differs, and what nobody read."""
    reasons = [Reason("conditions_differ", f"undeclared difference: {difference}") for difference in undeclared]
    reasons += [
        Reason("conditions_unknown", f"not known in both measurements: {name}")
        for name in unread
        if must_be_known(name)
    ]
    return reasons


def not_comparable(
    before: Measurement,
    after: Measurement,
    undeclared: Sequence[Difference],
    hard_events: Sequence[HardEvent],
    unread: Sequence[str] = (),
) -> list[Reason]:
    """Why the two must not be compared; empty: they may. `unread` names the conditions that a phase lacks."""
    reasons = conditions_apart(undeclared, unread)
    for name, measurement in (("before", before), ("after", after)):
        reasons += [
            Reason("measurement_failed", f"the measurement {name}: {problem}") for problem in measurement.invalid
        ]
        reasons += [Reason(code, f"the measurement {name}: {text}") for code, text in shortcomings(measurement)]
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
    if _asked(old) != _asked(new):
        reasons.append(Reason("levels_differ", f"{old.name} was not the same load before and after"))
    if old.cache_hit is not None and new.cache_hit is not None and abs(new.cache_hit - old.cache_hit) > CACHE_TOLERANCE:
        hits = f"{format_share(old.cache_hit)} before, {format_share(new.cache_hit)} after"
        reasons.append(Reason("cache_state_differs", f"input tokens from a cache at {old.name}: {hits}"))
    ratio = work_ratio(old, new, 0)
    if ratio is not None and abs(ratio - 1) > INPUT_TOLERANCE:
        text = f"the same prompts have {ratio:.2f} times the input tokens at {old.name}"
        reasons.append(Reason("unequal_input", text))
    for phase, level in (("before", old), ("after", new)):
        for code, text in shortfalls(level):
            reasons.append(Reason(code, f"the load generator did not keep up {phase}, at {level.name}: {text}"))
    return reasons


def _asked(level: LevelMeasurement) -> tuple[float | None, ...]:
    return level.streams, level.planned_rate, level.asked_seconds


def shortfalls(level: LevelMeasurement) -> Iterator[tuple[str, str]]:
    """In what a level was less load than was asked for, by the sender's own doing: a word for it, and the figures."""
    if is_late(level, LAG_SECONDS, LAG_SHARE):
        yield LATE, f"it sent {format_duration(level.lag_p99 or 0)} late (P99)"
    if level.planned_rate and level.sent_rate is not None and level.sent_rate < LEAST_RATE * level.planned_rate:
        sent, planned = format_value(level.sent_rate, RATE), format_value(level.planned_rate, RATE)
        yield "rate_not_reached", f"it sent {sent} of {planned}"
    if level.streams and _too_few_at_once(level, level.streams):
        at_once = f"{_at_once(level):.3g} requests were under way at a time"
        yield "streams_not_reached", f"{at_once}, of {level.streams} streams"
    lasts = level.asked_seconds if level.ended is None else level.ended
    if level.streams and lasts and level.window and level.window < LEAST_TIME * lasts:
        lasted, asked = format_duration(level.window), format_duration(lasts)
        yield "level_cut_short", f"it sent for {lasted} instead of {asked}"
    if level.failures.get(CLIENT_LIMIT):
        yield "sender_full", f"its own host had no room for {level.failures[CLIENT_LIMIT]} requests"


def _too_few_at_once(level: LevelMeasurement, streams: int) -> bool:
    """Whether a closed level was less than its streams.

    A failed request makes its stream pause, so that failures explain it; and fewer requests than streams are too few
    for any verdict, or were refused when the plan was read.
    """
    return not level.failed and level.n >= streams and _at_once(level) < LEAST_STREAMS * streams


def _at_once(level: LevelMeasurement) -> float:
    """Requests under way at a time; at most, where the level never had all of its streams; infinite: not known."""
    if level.in_flight_mean is not None:
        return level.in_flight_mean
    return math.inf if level.in_flight_most is None else float(level.in_flight_most)


def is_late(level: LevelMeasurement, seconds: float, share: float) -> bool:
    """Whether the generator's own lateness is beyond `seconds` and beyond `share` of the median time to first token.

    Of answers that come whole it is the time to the whole one.
    """
    first = level.value("e2e_user" if level.has_no_meaning("ttft_user") else "ttft_user", "p50")
    return level.lag_p99 is not None and level.lag_p99 > max(seconds, share * (first or 0.0))


def work_ratio(old: LevelMeasurement, new: LevelMeasurement, index: int) -> float | None:
    """Input (index 0) or output (1) tokens after / before, per answer, over the prompts that both answered.

    Per answer and prompt, because a slower phase of fixed length gets through fewer prompts. None: not counted.
    """
    shared = sorted(old.per_prompt.keys() & new.per_prompt.keys())
    both = [(old.per_prompt[prompt][index], new.per_prompt[prompt][index]) for prompt in shared]
    counted = [(before, after) for before, after in both if before is not None and after is not None]
    total = sum(before for before, _ in counted)
    return sum(after for _, after in counted) / total if total else None


def unequal_work(old: LevelMeasurement, new: LevelMeasurement) -> str | None:
    """Why whole answers and throughput of the two levels must not be compared; None: the work was the same."""
    ratio = work_ratio(old, new, 1)
    if ratio is not None and not OUTPUT_BAND[0] <= ratio <= OUTPUT_BAND[1]:
        return f"the same prompts got {ratio:.2f} times the output tokens at {old.name}"
    lost = abs(new.not_sent_share - old.not_sent_share)
    if lost > FINISH_SHARE and abs(new.not_sent - old.not_sent) > FINISH_REQUESTS:
        figures = f"{old.not_sent} before, {new.not_sent} after"
        return f"turns that could not be sent, the one before having got no good answer, at {old.name}: {figures}"
    if not old.ok or not new.ok:
        return None
    for reason in sorted(old.finish.keys() | new.finish.keys()):
        # Rounded: two of fifty must not become more than two by the last bit of a division.
        shift = round(abs(new.finish.get(reason, 0) / new.ok - old.finish.get(reason, 0) / old.ok), 9)
        if shift > FINISH_SHARE and round(shift * min(old.ok, new.ok), 6) > FINISH_REQUESTS:
            return f'answers that end with "{reason}" changed by {format_share(shift)} at {old.name}'
    return None
