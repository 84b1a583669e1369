"""Harm that needs no statistics: hard events, a level whose requests fail, answers that are empty or run in loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from changectl.core.judging import harm, quality
from changectl.core.judging.judgement import HardEvent, Reason
from changectl.core.measuring.measured import Measurement
from changectl.core.units import format_share


def at_once(
    before: Measurement, after: Measurement, hard_events: Sequence[HardEvent]
) -> tuple[list[Reason], list[Reason]]:
    """The harm, and what would be harm if the baseline had not been as bad, which leaves the verdict open."""
    harms = [Reason(event.code, event.text) for event in hard_events if event.phase == "B"]
    harms += looping(before, after)
    gaps: list[Reason] = []
    for old, new in harm.level_pairs(before, after):
        for code, words, limit, was, now in (
            ("error_share", "requests failed", harm.ERROR_SHARE, old.failure_share, new.failure_share),
            ("empty_answers", "answers were empty", harm.EMPTY_SHARE, old.empty_share, new.empty_share),
        ):
            if now is None or now <= limit:
                continue
            text = f"{format_share(now)} of the {words} at {new.name} (limit {format_share(limit)})"
            if was is not None and was > limit:
                gaps.append(Reason(f"baseline_{code}", f"{text}, and {format_share(was)} before the change"))
            else:
                harms.append(Reason(code, text))
    return harms, gaps


def looping(before: Measurement, after: Measurement) -> list[Reason]:
    """The harm that more prompts than before are answered in loops, by more than chance explains; empty: none."""
    prompts = quality.common([before.answers, after.answers])
    was, now = ([one.answers[prompt].loops for prompt in prompts] for one in (before, after))
    more = sum(now) - sum(was)
    p = quality.sign_test([new - old for old, new in zip(was, now, strict=True)])
    if more <= harm.LOOPING_SHARE * len(prompts) or p >= harm.FISHER_P:
        return []
    text = f"the answers to {sum(now)} of {len(prompts)} quality prompts run in loops, {sum(was)} before the change"
    return [Reason("looping_answers", text)]


def too_few(measurement: Measurement, when: str) -> Iterator[Reason]:
    """Every level with fewer good answers than anything can be told from; `when` says in which phase."""
    for level in measurement.levels:
        if level.ok < harm.MINIMUM_OK:
            text = f"{level.ok} good answers at {level.name} {when}; {harm.MINIMUM_OK} are needed"
            yield Reason("too_few", text)
