"""Are the figures of a level precise enough? Asked where a pass over the workload ends, so that its mix stays the same.

The requests of one level are no independent draws: a slow moment makes many of them slow. So whole passes (rounds) are
put together in order, into a few batches, and the standard error of a figure follows from how much the batches differ
(batch means: Law and Kelton, "Simulation Modeling and Analysis", chapter 9). The figures are those that the controller
judges; their errors are relative, which is the standard error of the logarithm.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from changectl.adapters.loadgen.enough import LATENCIES, Enough, parts

BATCHES = 10  # at the least: with fewer nobody knows how much they differ
MORE = 1.1  # times the rounds of the last look: so many looks only that they cost nothing beside the requests
_PERCENT = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
_REACH = 2.0  # standard errors to either side, between which order statistics are read
_LEAST_OF_CHANCE = 0.5  # a mix that is the same in all batches varies by less than chance alone, but not by nothing
_SPANS = {
    "ttft_user": ("t_planned", "t_first"),
    "ttft_sent": ("t_sent", "t_first"),
    "ttfo": ("t_sent", "t_first_output"),
    "tpot": ("t_first", "t_last"),
    "e2e_user": ("t_planned", "t_last"),
    "e2e_sent": ("t_sent", "t_last"),
}


def duration(record: Mapping[str, Any], metric: str) -> Optional[float]:
    """A latency of one request in nanoseconds, as the controller computes it; None: it has none."""
    if metric == "icl_max":
        return None if record["max_gap_ns"] is None else float(record["max_gap_ns"])
    begin, end = (record[name] for name in _SPANS[metric])
    if begin is None or end is None:
        return None
    if metric != "tpot":
        return float(end - begin)
    tokens = record["n_out"]
    return None if tokens is None or tokens < 2 or end == begin else (end - begin) / (tokens - 1)


class _Round:
    """The requests of one pass over the workload."""

    __slots__ = ("busy", "failed", "good", "left", "tokens", "values")

    def __init__(self, left: int, metrics: Sequence[str]) -> None:
        self.left = left  # entries of the workload without an end
        self.good, self.failed, self.busy = 0, 0, 0.0
        self.tokens: Optional[float] = 0.0  # None: the server did not count them for every good answer
        self.values: Dict[str, List[float]] = {metric: [] for metric in metrics}

    def add(self, record: Mapping[str, Any]) -> None:
        self.busy += record["t_end"] - record["t_planned"]
        if record["cls"] != "ok":
            self.failed += 1
            return
        self.good += 1
        if self.tokens is not None:
            self.tokens = None if record["n_out"] is None else self.tokens + record["n_out"]
        for metric, values in self.values.items():
            value = duration(record, metric)
            if value is not None:
                values.append(value)


Batches = Sequence[Sequence[_Round]]


class Precision:
    """The figures of one level under way; `entries`: of the workload, each with a record or more in every round.

    A look at many requests must not hold up the next ones: the figure that was not precise at the last look is asked
    first, and only what is asked for is sorted, with what was sorted before.
    """

    def __init__(self, enough: Enough, entries: int) -> None:
        self._enough = enough
        self._entries = entries
        self._figures = list(enough.errors)
        named = {metric for metric, _ in map(_parts, self._figures)}
        self._ordered: Dict[str, List[float]] = {metric: [] for metric in LATENCIES if metric in named}
        self._rounds: List[_Round] = []
        self._whole = 0  # so many first rounds have all of their requests
        self._sorted_in = dict.fromkeys(self._ordered, 0)  # so many of them are among the ordered values
        self._look_at = BATCHES

    def add(self, record: Mapping[str, Any], round_number: int, last: bool) -> None:
        """A request has ended; `last`: of its entry, which has no further turn."""
        while len(self._rounds) <= round_number:
            self._rounds.append(_Round(self._entries, list(self._ordered)))
        own = self._rounds[round_number]
        own.add(record)
        own.left -= last
        while self._whole < len(self._rounds) and not self._rounds[self._whole].left:
            self._whole += 1

    def reached(self) -> bool:
        """Whether all figures are precise enough, by the whole rounds that there are."""
        if self._whole < self._look_at:
            return False
        self._look_at = math.ceil(self._whole * MORE)
        if sum(one.good for one in self._rounds[: self._whole]) < self._enough.requests:
            return False
        batches, judged = self._batches(), False
        for figure in list(self._figures):
            if not self._has(figure):
                continue
            judged = True
            if not self._error(figure, batches) < self._enough.errors[figure]:
                self._figures.remove(figure)
                self._figures.insert(0, figure)
                return False
        return judged

    def _has(self, figure: str) -> bool:
        """A figure without any value is one that these answers have not: none to wait for."""
        metric = _parts(figure)[0]
        return metric not in self._ordered or any(one.values[metric] for one in self._rounds[: self._whole])

    def _sort_in(self, metric: str) -> List[float]:
        ordered = self._ordered[metric]
        for one in self._rounds[self._sorted_in[metric] : self._whole]:
            one.values[metric].sort()
            ordered.extend(one.values[metric])
        ordered.sort()
        self._sorted_in[metric] = self._whole
        return ordered

    def _batches(self) -> Batches:
        """From ten batches to nineteen, of equally many rounds in order; what is left over is with the last one."""
        each = self._whole // BATCHES
        starts = list(range(0, self._whole - each + 1, each))
        ends = [*starts[1:], self._whole]
        return [self._rounds[start:end] for start, end in zip(starts, ends)]  # noqa: B905  Python 3.8

    def _error(self, figure: str, batches: Batches) -> float:
        """The relative standard error of a figure; infinite: nobody knows.

        A closed level answers as many requests in a time as its streams have room for (Little): good answers per busy
        time of a stream are its rate, but for the number of streams.
        """
        metric, statistic = _parts(figure)
        if statistic in _PERCENT:
            return percentile_error(self._sort_in(metric), metric, batches, _PERCENT[statistic])
        if statistic:
            return ratio_error(
                [math.fsum(math.fsum(one.values[metric]) for one in batch) for batch in batches],
                [sum(len(one.values[metric]) for one in batch) for batch in batches],
            )
        busy = [math.fsum(one.busy for one in batch) for batch in batches]
        if metric == "rps_ok":
            return ratio_error([sum(one.good for one in batch) for batch in batches], busy)
        tokens = [[one.tokens for one in batch if one.tokens is not None] for batch in batches]
        whole = all(len(known) == len(batch) for known, batch in zip(tokens, batches))  # noqa: B905  Python 3.8
        return ratio_error([math.fsum(known) for known in tokens], busy) if whole else math.inf


def _parts(figure: str) -> Tuple[str, str]:
    return parts(figure) or ("", "")


def ratio_error(tops: Sequence[float], bottoms: Sequence[float]) -> float:
    """The relative standard error of the one sum over the other, by how much it differs from batch to batch.

    Cochran, "Sampling Techniques", 1977, chapter 6.
    """
    top, bottom, n = math.fsum(tops), math.fsum(bottoms), len(tops)
    if top <= 0 or bottom <= 0 or n < 2:
        return math.inf
    ratio = top / bottom
    rest = math.fsum((one - ratio * other) ** 2 for one, other in zip(tops, bottoms))  # noqa: B905  Python 3.8
    return math.sqrt(rest * n / (n - 1)) / top


def percentile_error(ordered: Sequence[float], metric: str, batches: Batches, share: float) -> float:
    """The relative standard error of a percentile, a failed request being infinitely slow.

    How many requests are beyond it differs from batch to batch; so far to either side of it order statistics are read
    (Woodruff, "Confidence intervals for medians and other position measures", JASA 1952).
    """
    failed = [sum(one.failed for one in batch) for batch in batches]
    sizes = [lost + sum(len(one.values[metric]) for one in batch) for batch, lost in zip(batches, failed)]  # noqa: B905
    n, number = sum(sizes), len(sizes)
    at = int((n - 1) * share)
    if number < 2 or at >= len(ordered):
        return math.inf
    middle = ordered[at]
    beyond = [
        lost + sum(len(one.values[metric]) - bisect_right(one.values[metric], middle) for one in batch)
        for batch, lost in zip(batches, failed)  # noqa: B905  Python 3.8
    ]
    part = sum(beyond) / n
    rest = math.fsum((one - part * size) ** 2 for one, size in zip(beyond, sizes))  # noqa: B905  Python 3.8
    chance = math.sqrt(n * share * (1 - share))
    reach = _REACH * max(math.sqrt(rest * number / (number - 1)), _LEAST_OF_CHANCE * chance)
    low, high = math.floor(at - reach), math.ceil(at + reach)
    if low < 0 or high >= len(ordered) or ordered[low] <= 0:
        return math.inf
    return math.log(ordered[high] / ordered[low]) / (2 * _REACH)
