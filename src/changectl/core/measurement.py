"""From the records of one phase's requests to its figures. Missing stays None; NaN never appears."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from changectl.core import statistics
from changectl.core.answers import answers_of
from changectl.core.durations import DURATIONS, Durations, marks, means
from changectl.core.goodput import goodput, latency_limits
from changectl.core.in_flight import in_flight
from changectl.core.level_size import LevelSize
from changectl.core.measured import LevelMeasurement, Measurement, Statistics, Work
from changectl.core.metrics import Guard
from changectl.core.record_lines import parse_records
from changectl.core.records import NOT_SENT, OK, Record

if TYPE_CHECKING:
    from changectl.core.durations import Figures, Marks

__all__ = ["LevelMeasurement", "Measurement", "Record", "parse_records", "summarise"]


def summarise(
    records: Iterable[Record],
    levels: Mapping[str, LevelSize],
    *,
    slo: Sequence[Guard] = (),
    facts: Mapping[str, float | None] | None = None,
    generator_failure: str | None = None,
    expected: Collection[str] = (),
) -> Measurement:
    """The measurement of one phase.

    Args:
        records: of the whole phase; levels that are not asked for (the warm-up) are left out.
        levels: the levels that the phase was to measure, and how much of each.
        slo: the service's limits, for the share of requests that are within them.
        facts: figures of the phase that do not come from requests; None and non-finite values mean "not known".
        generator_failure: why the load generator did not do all that it was asked for; makes the phase invalid.
        expected: the prompts of which the workload says what has to be in their answer.
    """
    by_level: dict[str, list[Record]] = {name: [] for name in levels}
    for record in records:
        if record.level in by_level:
            by_level[record.level].append(record)
    problems = [f"load generator: {generator_failure}"] if generator_failure else []
    for name, members in by_level.items():
        problems += _gaps(name, members)
    known = {
        name: value if value is not None and math.isfinite(value) else None for name, value in (facts or {}).items()
    }
    measured = tuple(_summarise_level(name, by_level[name], size, slo) for name, size in levels.items())
    answers = answers_of((record for members in by_level.values() for record in members), expected)
    return Measurement(measured, known, tuple(problems), answers)


def _gaps(level: str, members: Sequence[Record]) -> list[str]:
    """A record that got lost would make its request invisible, so numbers must be whole."""
    if not members:
        return [f"level {level} has no request records"]
    if sorted(record.i for record in members) != list(range(len(members))):
        return [f"level {level} has request records missing or twice"]
    return []


def _summarise_level(name: str, due: Sequence[Record], size: LevelSize, slo: Sequence[Guard]) -> LevelMeasurement:
    members = [record for record in due if record.cls != NOT_SENT]
    not_sent = len(due) - len(members)
    good = [record for record in members if record.cls == OK]
    failed = len(members) - len(good)
    window = _window(members)
    tokens_in = _total([record.n_in for record in good])
    tokens_out = _total([record.n_out for record in good])
    under_way = in_flight(members, closed=not size.load.open)
    sent = Durations(members)
    answered = sent.only(marks(record.cls == OK for record in members))
    return LevelMeasurement(
        name=name,
        n=len(members),
        ok=len(good),
        not_sent=not_sent,
        failures=dict(sorted(Counter(record.cls for record in members if record.cls != OK).items())),
        latency={metric: _latency(answered.values(metric), len(good), failed) for metric in DURATIONS},
        far={metric: statistics.far(answered.values(metric)) for metric in DURATIONS},
        missing=_marked({metric: answered.missing(metric) for metric in DURATIONS}),
        undefined=_marked({metric: answered.undefined(metric) for metric in (*DURATIONS, "out_tok_s")}),
        window=window,
        rps_ok=len(good) / window if window else None,
        out_tok_s=tokens_out / window if window and tokens_out is not None else None,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        finish=dict(sorted(Counter(record.finish or "none" for record in good).items())),
        cache_hit=_cache_hit(good),
        lag_p99=_lag(sent),
        per_prompt=_per_prompt(good, answered),
        streams=size.load.streams,
        asked_seconds=size.lasts if size.requests is None else None,
        planned_rate=size.rate,
        sent_rate=_sent_rate(members, size, not_sent),
        in_flight_mean=under_way.mean,
        in_flight_most=under_way.most,
        goodput=goodput(answered, len(members), latency_limits(slo, name)),
    )


def _latency(values: Figures, good: int, failed: int) -> Statistics:
    if good and not len(values):
        return statistics.nothing()  # only failures would be left, and they alone say nothing about the good answers
    return statistics.describe(values, failed)


def _marked(marks: Mapping[str, Marks]) -> dict[str, int]:
    counts = {metric: int(marked.sum()) for metric, marked in marks.items()}
    return {metric: count for metric, count in counts.items() if count}


def _window(members: Sequence[Record]) -> float | None:
    ends = [record.t_end for record in members if record.t_end is not None]
    if not ends:
        return None
    window = (max(ends) - min(record.t_planned for record in members)) / 1e9
    return window if window > 0 else None


def _total(counts: Sequence[int | None]) -> int | None:
    """None where one is not known: a sum over some of the answers would look like a loss of throughput."""
    return None if None in counts else sum(count for count in counts if count)


def _cache_hit(good: Sequence[Record]) -> float | None:
    said = [(record.cached, record.n_in) for record in good if record.cached is not None and record.n_in]
    total = sum(n_in for _, n_in in said)
    return sum(cached for cached, _ in said) / total if total else None


def _lag(sent: Durations) -> float | None:
    """P99 of the generator's own lateness; with few requests the worst one stands in for it, on the safe side."""
    lags = statistics.ascending(sent.values("lag"))
    if not lags:
        return None
    return statistics.percentile(lags, 99) if len(lags) >= statistics.MINIMUM["p99"] else lags[-1]


def _sent_rate(members: Sequence[Record], size: LevelSize, not_sent: int) -> float | None:
    """Requests per second that an open level really began: being late at its end, it took so much longer for them.

    Those that could not be sent are no doing of the sender.
    """
    begun = [record.t_start for record in members if record.t_start is not None]
    if size.rate is None or not size.lasts or not begun:
        return None
    overrun = (max(begun) - max(record.t_planned for record in members)) / 1e9
    return (len(begun) + not_sent) / (size.lasts + overrun) if size.lasts + overrun > 0 else None


def _per_prompt(good: Sequence[Record], answered: Durations) -> dict[str, Work]:
    """What each prompt put in and got out; the input of a later turn holds the model's own answers, and is left out."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(record.prompt, len(number)) for record in good]
    n_in, n_out = answered.field("n_in"), answered.field("n_out")
    counted = ((n_in == n_in) & (n_out == n_out)) | answered.undefined("out_tok_s")
    put_in = means(numbers, len(number), n_in, counted & ~(answered.field("turn") > 1))
    got_out = means(numbers, len(number), n_out, counted)
    found = {prompt: (put_in[its], got_out[its]) for prompt, its in sorted(number.items())}
    return {prompt: work for prompt, work in found.items() if work != (None, None)}
