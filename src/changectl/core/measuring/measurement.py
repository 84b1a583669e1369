"""From the records of one phase's requests to its figures. Missing stays None; NaN never appears."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from changectl.core.measuring import statistics
from changectl.core.measuring.answers import answers_of
from changectl.core.measuring.durations import DURATIONS, Durations, marks, means
from changectl.core.measuring.goodput import goodput, latency_limits
from changectl.core.measuring.in_flight import in_flight
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measured import LevelMeasurement, Measurement, Statistics, Work
from changectl.core.measuring.metrics import Guard
from changectl.core.measuring.record_lines import parse_records
from changectl.core.measuring.records import NOT_SENT, OK, Record, Records
from changectl.core.measuring.steady import Throughput, steady

if TYPE_CHECKING:
    from changectl.core.measuring.durations import Figures, Marks

__all__ = ["LevelMeasurement", "Measurement", "Record", "Records", "parse_records", "summarise"]


def summarise(
    records: Iterable[Record],
    levels: Mapping[str, LevelSize],
    *,
    slo: Sequence[Guard] = (),
    facts: Mapping[str, float | None] | None = None,
    generator_failure: str | None = None,
    expected: Collection[str] = (),
    ended: Mapping[str, float] | None = None,
) -> Measurement:
    """The measurement of one phase.

    Args:
        records: of the whole phase; levels that are not asked for (the warm-up) are left out.
        levels: the levels that the phase was to measure, and how much of each.
        slo: the service's limits, for the share of requests that are within them.
        facts: figures of the phase that do not come from requests; None and non-finite values mean "not known".
        generator_failure: why the load generator did not do all that it was asked for; makes the phase invalid.
        expected: the prompts of which the workload says what has to be in their answer.
        ended: level -> seconds after which it was over, its figures being precise.
    """
    every = Records.of(records)
    by_level = {name: _Level(every, name) for name in levels}
    problems = [f"load generator: {generator_failure}"] if generator_failure else []
    for name, members in by_level.items():
        problems += _gaps(name, members)
    known = {
        name: value if value is not None and math.isfinite(value) else None for name, value in (facts or {}).items()
    }
    measured = tuple(
        _summarise_level(name, by_level[name], size, slo, (ended or {}).get(name)) for name, size in levels.items()
    )
    answers = answers_of(every.only([level in by_level for level in every.texts("level")]), expected)
    return Measurement(measured, known, tuple(problems), answers)


class _Level:
    """The requests of one level that were due, those of them that could be sent, and those with a good answer."""

    def __init__(self, records: Records, name: str) -> None:
        self.due = records.only([level == name for level in records.texts("level")])
        self.said = self.due.only([cls != NOT_SENT for cls in self.due.texts("cls")])
        self.good = self.said.only([cls == OK for cls in self.said.texts("cls")])
        self.sent, self.answered = Durations(self.said), Durations(self.good)


def _gaps(level: str, members: _Level) -> list[str]:
    """A record that got lost would make its request invisible, so numbers must be whole."""
    if not len(members.due):
        return [f"level {level} has no request records"]
    if statistics.ascending(members.due.figures("i")) != list(range(len(members.due))):
        return [f"level {level} has request records missing or twice"]
    return []


def _summarise_level(
    name: str, members: _Level, size: LevelSize, slo: Sequence[Guard], ended: float | None
) -> LevelMeasurement:
    sent, answered = members.sent, members.answered
    n, ok, not_sent = len(members.said), len(members.good), len(members.due) - len(members.said)
    window = _window(sent)
    tokens_in, tokens_out = answered.total("n_in"), answered.total("n_out")
    under_way = in_flight(sent, closed=not size.load.open)
    rate = _throughput(members, size, ended)
    if rate is None and window:
        rate = Throughput(ok / window, tokens_out / window if tokens_out is not None else None)
    return LevelMeasurement(
        name=name,
        n=n,
        ok=ok,
        not_sent=not_sent,
        failures=_counted(cls for cls in members.said.texts("cls") if cls != OK),
        latency={metric: _latency(answered.values(metric), ok, n - ok) for metric in DURATIONS},
        far={metric: statistics.far(answered.values(metric)) for metric in DURATIONS},
        missing=_marked({metric: answered.missing(metric) for metric in DURATIONS}),
        undefined=_marked({metric: answered.undefined(metric) for metric in (*DURATIONS, "out_tok_s")}),
        window=window,
        rps_ok=rate.answers if rate else None,
        out_tok_s=rate.tokens if rate else None,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        finish=_counted(finish or "none" for finish in members.good.texts("finish")),
        cache_hit=_cache_hit(answered),
        lag_p99=_lag(sent),
        per_prompt=_per_prompt(members.good.texts("prompt"), answered),
        streams=size.load.streams,
        asked_seconds=size.lasts if size.requests is None else None,
        may_end=size.may_end,
        ended=ended,
        planned_rate=size.rate,
        sent_rate=_sent_rate(sent, size, not_sent),
        in_flight_mean=under_way.mean,
        in_flight_most=under_way.most,
        goodput=goodput(answered, n, latency_limits(slo, name)),
    )


def _latency(values: Figures, good: int, failed: int) -> Statistics:
    if good and not len(values):
        return statistics.nothing()  # only failures would be left, and they alone say nothing about the good answers
    return statistics.describe(values, failed)


def _marked(marks: Mapping[str, Marks]) -> dict[str, int]:
    counts = {metric: int(marked.sum()) for metric, marked in marks.items()}
    return {metric: count for metric, count in counts.items() if count}


def _counted(words: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(words).items()))


def _window(sent: Durations) -> float | None:
    ends = sent.known("t_end")
    if not len(ends):
        return None
    window = float(ends.max() - sent.field("t_planned").min()) / 1e9
    return window if window > 0 else None


def _throughput(members: _Level, size: LevelSize, ended: float | None) -> Throughput | None:
    """That of the time in which all streams ran, where a level may be shorter in one phase than in another."""
    if not size.may_end or size.lasts is None:
        return None
    good = marks([cls == OK for cls in members.said.texts("cls")])
    return steady(members.sent, good, size.lasts if ended is None else ended)


def _cache_hit(answered: Durations) -> float | None:
    n_in, cached = answered.field("n_in"), answered.field("cached")
    known = (n_in == n_in) & (n_in != 0) & (cached == cached)
    total = float(n_in[known].sum())
    return float(cached[known].sum()) / total if total else None


def _lag(sent: Durations) -> float | None:
    """P99 (nearest rank) of the generator's own lateness.

    Below a hundred requests that is the worst one. Where a P95 is judged, a single straggler is left out all the same:
    it moves neither that nor the median.
    """
    lags = statistics.ascending(sent.values("lag"))
    if not lags:
        return None
    spared = max(len(lags) // 100, 1 if len(lags) >= statistics.MINIMUM["p95"] else 0)
    return lags[-1 - spared]


def _sent_rate(sent: Durations, size: LevelSize, not_sent: int) -> float | None:
    """Requests per second that an open level really began: being late at its end, it took so much longer for them.

    Those that could not be sent are no doing of the sender.
    """
    begun = sent.known("t_start")
    if size.rate is None or not size.lasts or not len(begun):
        return None
    overrun = float(begun.max() - sent.field("t_planned").max()) / 1e9
    return (len(begun) + not_sent) / (size.lasts + overrun) if size.lasts + overrun > 0 else None


def _per_prompt(prompts: Sequence[str], answered: Durations) -> dict[str, Work]:
    """What each prompt put in and got out; the input of a later turn holds the model's own answers, and is left out."""
    number = {prompt: its for its, prompt in enumerate(dict.fromkeys(prompts))}
    numbers = [number[prompt] for prompt in prompts]
    n_in, n_out = answered.field("n_in"), answered.field("n_out")
    counted = ((n_in == n_in) & (n_out == n_out)) | answered.undefined("out_tok_s")
    put_in = means(numbers, len(number), n_in, counted & ~(answered.field("turn") > 1))
    got_out = means(numbers, len(number), n_out, counted)
    found = {prompt: (put_in[its], got_out[its]) for prompt, its in sorted(number.items())}
    return {prompt: work for prompt, work in found.items() if work != (None, None)}
