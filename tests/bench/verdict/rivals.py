"""What other tools and habits would have said of the same requests.

Each gets the records of A and of B that the product's own reader read, and says regressed, passed or inconclusive. As
practised there is one A and one B; given all phases, a rival gets the order of the trial for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import mannwhitneyu
from tests.bench.verdict import kayenta

from changectl.core.measuring.durations import Durations
from changectl.core.measuring.records import OK, Record, Records
from changectl.core.trial.order import Letter

Array = npt.NDArray[np.float64]
Says = Literal["regressed", "passed", "inconclusive"]
Phases = Sequence[tuple[Letter, Sequence[Record]]]
METRICS = ("ttft_user", "tpot", "e2e_user")
POINTS = 50  # of a series, as a metrics store would keep it
RUNS = 10  # of a benchmark, as benchstat's page advises
INTERVALS = 10  # of an analysis, in which its conditions are looked at
FAILURE_LIMIT, ERROR_LIMIT = 3, 4  # as in Argo's example, and by default
LEAST_SUCCESS = 0.95
ALPHA = 0.05


@dataclass(frozen=True)
class Series:
    """One metric at one level: the good answers' values in milliseconds, in the order in which they were due."""

    before: Array
    after: Array


def series(phases: Phases) -> list[Series]:
    """Every metric at every level; a metric that no answer has gives empty ones."""
    found: dict[tuple[str, str], tuple[list[Array], list[Array]]] = {}
    for letter, records in phases:
        for level, own in by_level(records).items():
            durations = Durations(Records.of(record for record in own if record.cls == OK))
            for metric in METRICS:
                both = found.setdefault((level, metric), ([], []))
                both[letter == "B"].append(1000 * durations.values(metric))
    return [Series(*(np.concatenate(own) if own else np.zeros(0) for own in both)) for both in found.values()]


def by_level(records: Sequence[Record]) -> dict[str, list[Record]]:
    """The records of each level, by when they were due."""
    levels: dict[str, list[Record]] = {}
    for record in records:
        levels.setdefault(record.level, []).append(record)
    return {level: sorted(own, key=lambda record: record.t_planned) for level, own in levels.items()}


def naive_mean(phases: Phases) -> Says:
    """Any mean more than 5 % higher."""
    return _any(one.after.mean() > 1.05 * one.before.mean() for one in _with_data(phases))


def naive_p95(phases: Phases) -> Says:
    """Any P95 more than 10 % higher."""
    return _any(
        np.percentile(one.after, 95) > 1.10 * np.percentile(one.before, 95) for one in _with_data(phases)
    )  # fmt: skip


def mann_whitney(phases: Phases) -> Says:
    """Any metric whose requests are slower by a one-sided rank test, as if they were independent."""
    tests = (
        mannwhitneyu(one.after, one.before, alternative="greater", method="asymptotic") for one in _with_data(phases)
    )
    return _any(test.pvalue < ALPHA for test in tests)


def kayenta_requests(phases: Phases) -> Says:
    """Kayenta's judge on every request."""
    return _kayenta([(one.before, one.after) for one in series(phases)])


def kayenta_points(phases: Phases) -> Says:
    """Kayenta's judge on a series of points, each the mean of the requests of its time."""
    return _kayenta([(_means(one.before, POINTS), _means(one.after, POINTS)) for one in series(phases)])


def benchstat(phases: Phases) -> Says:
    """Any metric whose runs are slower, by an exact two-sided rank test; fewer than four runs tell nothing.

    A run is a tenth of a phase, as `-count=10` measures one build after the other.
    """
    found = [(_means(one.before, RUNS), _means(one.after, RUNS)) for one in _with_data(phases)]
    return _any(
        np.median(after) > np.median(before)
        and mannwhitneyu(after, before, alternative="two-sided", method="exact").pvalue < ALPHA
        for before, after in found
        if min(len(before), len(after)) >= 4
    )


def argo(phases: Phases) -> Says:
    """Argo's analysis: fixed conditions, looked at again and again while the new configuration runs.

    P95 at most a tenth above what the saved one had, and 95 % of the requests good; a condition that failed more than
    three times fails it, five looks in a row without a figure are an error.
    """
    worst: Says = "passed"
    limits = {
        key: 1.10 * float(np.percentile(values, 95)) for key, values in _values(phases, "A").items() if len(values)
    }
    after = [record for letter, records in phases if letter == "B" for record in records]
    for level, own in by_level(after).items():
        failed = np.array([record.cls != OK for record in own])
        if sum(part.mean() > 1 - LEAST_SUCCESS for part in np.array_split(failed, INTERVALS)) > FAILURE_LIMIT:
            return "regressed"
        for metric in METRICS:
            said = _condition([one for one in own if one.cls == OK], metric, limits.get((level, metric)))
            if said == "regressed":
                return said
            worst = said if said == "inconclusive" else worst
    return worst


def _condition(good: Sequence[Record], metric: str, limit: float | None) -> Says:
    values = 1000 * Durations(Records.of(good))[metric]
    parts = [part[~np.isnan(part)] for part in np.array_split(values, INTERVALS)]
    if sum(not len(part) for part in parts) > ERROR_LIMIT:
        return "inconclusive"
    if limit is None:
        return "passed"  # no condition is a success
    failed = sum(bool(len(part)) and float(np.percentile(part, 95)) > limit for part in parts)
    return "regressed" if failed > FAILURE_LIMIT else "passed"


def _values(phases: Phases, letter: Letter) -> dict[tuple[str, str], Array]:
    found: dict[tuple[str, str], list[Array]] = {}
    for own_letter, records in phases:
        if own_letter == letter:
            for level, own in by_level(records).items():
                durations = Durations(Records.of(record for record in own if record.cls == OK))
                for metric in METRICS:
                    found.setdefault((level, metric), []).append(1000 * durations.values(metric))
    return {key: np.concatenate(values) for key, values in found.items()}


def _kayenta(pairs: Sequence[tuple[Array, Array]]) -> Says:
    """Regressed: below the limit at which a canary is promoted; half of the metrics without data score nothing."""
    labels = [kayenta.label(before, after) for before, after in pairs]
    if 2 * labels.count("Nodata") >= len(labels):
        return "inconclusive"
    return "passed" if kayenta.score(labels) >= kayenta.PASS else "regressed"


def _with_data(phases: Phases) -> list[Series]:
    return [one for one in series(phases) if len(one.before) and len(one.after)]


def _means(values: Array, parts: int) -> Array:
    return np.array([part.mean() for part in np.array_split(values, parts) if len(part)])


def _any(found: object) -> Says:
    return "regressed" if any(found) else "passed"  # type: ignore[call-overload]


RIVALS: Mapping[str, Callable[[Phases], Says]] = {
    "mean +5 %": naive_mean,
    "P95 +10 %": naive_p95,
    "Mann-Whitney": mann_whitney,
    "Kayenta, requests": kayenta_requests,
    "Kayenta, points": kayenta_points,
    "Argo": argo,
    "benchstat": benchstat,
}


def first_pair(phases: Phases) -> Phases:
    """As practised: one A, then one B."""
    return phases[:2]
