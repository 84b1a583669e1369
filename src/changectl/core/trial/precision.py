"""How precise is enough: when a level of a trial may end before its time.

What a trial can see is limited by the noise between phases. Within a phase, figures whose standard error is half of
that noise make the noise of their difference an eighth larger, and more requests hardly help. What was learned of a
host from phases that ended so holds an eighth more, and no more than a sixth in the long run, for the next one is half
of that again.

Open levels are left out. Their requests are the same at the same moments in every phase; the beginning of such a
schedule has another rate, and other crowds, than all of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from changectl.core.judging import harm
from changectl.core.measuring.durations import DURATIONS
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.metrics import METRICS, Expectation, Guard, MetricRef
from changectl.core.measuring.statistics import MINIMUM
from changectl.core.trial.failures import FAILURES
from changectl.core.trial.noise_model import NoiseModel

SHARE = 0.5  # of the deviation between phases
# In one phase, over all levels: three answers without a failure for every 0.5 % that they exclude, the guard's margin.
REQUESTS = 600
# Of each stream: its first and its last request run beside fewer others than the rest, and must not weigh.
EACH_STREAM = 30


@dataclass(frozen=True, slots=True)
class Enough:
    """When a level is over before its time.

    Attributes:
        requests: good answers, at the least.
        errors: figure -> the standard error of its logarithm, below which it is precise.
    """

    requests: int
    errors: Mapping[str, float]

    def to_json(self) -> dict[str, Any]:
        """As the load generator is told."""
        return {"requests": self.requests, "errors": dict(self.errors)}


def enough(
    sizes: Mapping[str, LevelSize],
    *,
    service_class: str,
    guards: Sequence[Guard],
    expect: Sequence[Expectation],
    noise: NoiseModel,
) -> dict[str, Enough]:
    """The levels that may end before their time, and when.

    Args:
        sizes: the levels of a phase, all of them.
        service_class: which metrics are guarded by default ("interactive" or "offline").
        guards: absolute limits.
        expect: the gains that the plan expects.
        noise: what is taken for the host's.
    """
    found = {}
    for name, size in sizes.items():
        refs = set(_judged(name, service_class, guards, expect))
        requests = _requests(name, sizes, guards)
        if size.load.open or size.lasts is None or requests is None or not all(map(_can_be_precise, refs)):
            continue
        least = [MINIMUM[ref.statistic] for ref in refs if ref.statistic in MINIMUM]
        errors = {ref.name: SHARE * noise.of(str(ref)).spread.deviation for ref in refs}
        if errors:
            streams = EACH_STREAM * (size.load.streams or 1)
            found[name] = Enough(max(requests, streams, *least, 1), dict(sorted(errors.items())))
    return found


def _judged(
    level: str, service_class: str, guards: Sequence[Guard], expect: Sequence[Expectation]
) -> Iterator[MetricRef]:
    """What is judged at a level by how much it differs from phase to phase; failures are counted."""
    for name in (*harm.LATENCIES, *harm.THROUGHPUTS):
        metric = METRICS[name]
        if metric.margin(service_class) is not None and not harm.covered(name, level, guards):
            for statistic in ("p50", "p95") if metric.statistics else [None]:
                yield MetricRef(metric, statistic, level)
    for guard in guards:
        own = guard.ref
        if own.metric.per_level and own.metric is not FAILURES and own.level in (None, level):
            every = (own.statistic,) if own.statistic or not own.metric.statistics else harm.COVERED
            yield from (MetricRef(own.metric, statistic, level) for statistic in every)
    for gain in expect:
        own = gain.ref
        if own.metric.per_level and own.level in (None, level):
            yield MetricRef(own.metric, own.statistic or ("p50" if own.metric.statistics else None), level)


def _can_be_precise(ref: MetricRef) -> bool:
    """Whether the load generator can tell; fewer failures, or more goodput, take every request that there is."""
    return ref.metric.name in (*DURATIONS, *harm.THROUGHPUTS)


def _requests(level: str, sizes: Mapping[str, LevelSize], guards: Sequence[Guard]) -> int | None:
    """So many that failures can be judged, which are pooled over levels; None: no number suffices."""
    needed = math.ceil(REQUESTS / len(sizes))
    margin = FAILURES.margin("interactive") or 0.0
    for guard in guards:
        if guard.ref.metric is not FAILURES or guard.ref.level not in (None, level):
            continue
        if guard.limit.value <= 0:
            return None
        pooled = 1 if guard.ref.level else len(sizes)
        needed = max(needed, math.ceil(REQUESTS * max(1.0, margin / guard.limit.value) / pooled))
    return needed
