"""What is shown with a verdict whatever it is: judged by nobody, and nothing that a reader may miss."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from changectl.core.judging.conditions import must_be_known
from changectl.core.judging.gates import is_late
from changectl.core.judging.judgement import Reason
from changectl.core.measuring.measured import LevelMeasurement
from changectl.core.measuring.proportions import Count
from changectl.core.units import format_share

FLAGGED_FAILURES = 0.01
FAILURES_FLAG = "failures_above_1_percent"


def of_level(level: LevelMeasurement, when: str) -> Iterator[Reason]:
    """The flags of one level; `when` says in which phase."""
    share = level.failure_share
    if share is not None and share > FLAGGED_FAILURES:
        classes = ", ".join(f"{count} {name}" for name, count in level.failures.items())
        text = f"{format_share(share)} of the requests failed at {level.name} {when}: {classes}"
        yield Reason(FAILURES_FLAG, text)
    if level.cache_hit is None and level.ok:
        yield Reason("cache_unknown", f"the server did not say at {level.name} {when} what was cached")
    if is_late(level, 0.001, 0.02):
        yield Reason("generator_late", f"the load generator was busy at {level.name} {when}")


def of_share(seen: Count, of: str, when: str) -> list[Reason]:
    """The flag of failures that were counted by the service itself; none where they are few."""
    if seen.share <= FLAGGED_FAILURES:
        return []
    text = f"{format_share(seen.share)} of {seen.n:.0f} {of} failed {when}"
    return [Reason(FAILURES_FLAG, text)]


def unequal(text: str) -> Reason:
    """The flag of work that was not the same."""
    return Reason("unequal_work", f"{text}: whole answers and throughput are not judged there")


def unread(names: Sequence[str]) -> list[Reason]:
    """The flag of conditions that could not be read, where that does not forbid the comparison."""
    if not (others := [name for name in names if not must_be_known(name)]):
        return []
    text = f"not known in both measurements, so not shown to be equal: {', '.join(others)}"
    return [Reason("conditions_unknown", text)]
