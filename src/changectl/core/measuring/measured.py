"""The figures of one phase: per load level and for all of it, with a strict JSON form. Missing is None."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from changectl.core.measuring.answers import Answers
from changectl.core.measuring.metrics import MetricRef
from changectl.core.measuring.records import EMPTY
from changectl.core.measuring.self_test import SelfTest

FORMAT = 1
UNBOUNDED = "unbounded"  # how infinity is written in JSON, which has no number for it

Statistics = Mapping[str, float | None]
Work = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelMeasurement:
    """One load level of one phase.

    Attributes:
        name: the level's name.
        n: scheduled requests, those left out that could not be sent.
        ok: requests with a good answer.
        not_sent: turns of conversations that were due and never sent, the one before having no good answer in time.
        failures: class of failure -> count.
        latency: metric -> statistic -> seconds; infinity: unbounded, because too many requests failed.
        far: metric -> good answers that took more than twice their median; empty: an older program did not count them.
        missing: metric -> good answers for which it should exist but the data is not there.
        undefined: metric -> good answers for which it has no meaning (one token has no time per token after the first).
        window: seconds from the first planned request to the last end; None without requests.
        rps_ok: good answers per second of the window.
        out_tok_s: their output tokens per second; None when the server did not count them for every good answer.
        tokens_in: input tokens of good answers, None as above.
        tokens_out: output tokens of good answers, None as above.
        finish: finish reason -> count over good answers.
        cache_hit: share of input tokens that came from a cache; None: the server did not say.
        lag_p99: seconds by which the generator itself was late (P99; of 60 to 199 requests the worst but one).
        streams: of a closed level, as asked for; None: an open level.
        asked_seconds: how long the level was to last; None: for a number of requests.
        may_end: whether it was to be over before that time, as soon as its figures were precise; its throughput is that
            of the time in which all streams ran then, also where it used all of its time (see `steady`).
        ended: seconds after which that was so; None: it was not.
        planned_rate: requests per second of an open level that were due; None: a closed level.
        sent_rate: those that were begun; None: a closed level.
        in_flight_mean: requests under way over time, ramp and end of a closed level left out (see `in_flight`).
        in_flight_most: requests under way at most.
        goodput: share of scheduled requests within every latency limit of the slo; None: no limit, or data missing.
        per_prompt: prompt -> (mean input tokens, mean output tokens) over good answers with counts; None: input of a
            later turn, which holds earlier answers, and output of answers that are not made of tokens.
    """

    name: str
    n: int
    ok: int
    not_sent: int = 0
    failures: Mapping[str, int] = field(default_factory=dict)
    latency: Mapping[str, Statistics] = field(default_factory=dict)
    far: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, int] = field(default_factory=dict)
    undefined: Mapping[str, int] = field(default_factory=dict)
    window: float | None = None
    rps_ok: float | None = None
    out_tok_s: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    finish: Mapping[str, int] = field(default_factory=dict)
    cache_hit: float | None = None
    lag_p99: float | None = None
    streams: int | None = None
    asked_seconds: float | None = None
    may_end: bool = False
    ended: float | None = None
    planned_rate: float | None = None
    sent_rate: float | None = None
    in_flight_mean: float | None = None
    in_flight_most: int | None = None
    goodput: float | None = None
    per_prompt: Mapping[str, Work] = field(default_factory=dict)

    @property
    def spared(self) -> float:
        """Seconds of its time that it did not need."""
        return 0.0 if self.ended is None or self.asked_seconds is None else max(0.0, self.asked_seconds - self.ended)

    @property
    def failed(self) -> int:
        """Scheduled requests without a good answer."""
        return self.n - self.ok

    @property
    def failure_share(self) -> float | None:
        """Share of scheduled requests without a good answer; None without requests."""
        return self.failed / self.n if self.n else None

    @property
    def not_sent_share(self) -> float:
        """Share of what was due that could not be sent."""
        return self.not_sent / (self.n + self.not_sent) if self.not_sent else 0.0

    @property
    def empty_share(self) -> float | None:
        """Share of scheduled requests that were answered with nothing."""
        return self.failures.get(EMPTY, 0) / self.n if self.n else None

    def value(self, metric: str, statistic: str | None = None) -> float | None:
        """The figure of a metric at this level; None: no data, too few requests, or not defined."""
        if metric in self.latency:
            return self.latency[metric].get(statistic or "p50")
        figures = {"rps_ok": self.rps_ok, "out_tok_s": self.out_tok_s, "failures": self.failure_share}
        return {**figures, "goodput": self.goodput}.get(metric)

    def has_no_meaning(self, metric: str) -> bool:
        """Whether the metric is undefined for every good answer, none missing (so that its absence is no gap)."""
        return self.ok > 0 and self.undefined.get(metric, 0) == self.ok


@dataclass(frozen=True, slots=True)
class Measurement:
    """One phase.

    Attributes:
        levels: in order.
        facts: figures of the whole phase (load time, cache capacity).
        invalid: why it does not count.
        answers: quality prompt -> its answers, at all levels.
        self_test: how exactly the load generator tells time; None: it had no self-test then.
    """

    levels: tuple[LevelMeasurement, ...]
    facts: Mapping[str, float | None] = field(default_factory=dict)
    invalid: tuple[str, ...] = ()
    answers: Mapping[str, Answers] = field(default_factory=dict)
    self_test: SelfTest | None = None

    def level(self, name: str) -> LevelMeasurement | None:
        """The level of that name, if it was measured."""
        return next((level for level in self.levels if level.name == name), None)

    @property
    def spared(self) -> float:
        """Seconds of their time that its levels did not need."""
        return math.fsum(level.spared for level in self.levels)

    def value(self, ref: MetricRef, level: str | None = None) -> float | None:
        """The figure that a reference points at; `level` where the reference names none."""
        if not ref.metric.per_level:
            return self.facts.get(ref.metric.name)
        measured = self.level(ref.level or level or "")
        return None if measured is None else measured.value(ref.metric.name, ref.statistic)

    def to_json(self) -> dict[str, Any]:
        """Values that `json.dumps(..., allow_nan=False)` takes: infinity is the word "unbounded", missing is null."""
        return {
            "format": FORMAT,
            "levels": [to_plain(asdict(level)) for level in self.levels],
            "facts": to_plain(dict(self.facts)),
            "invalid": list(self.invalid),
            "answers": {prompt: asdict(one) for prompt, one in self.answers.items()},
            **({} if self.self_test is None else {"self_test": self.self_test.to_json()}),
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Measurement:
        """What `to_json` wrote.

        Raises:
            ValueError: another format, or not the shape of a measurement.
        """
        if raw.get("format") != FORMAT:
            raise ValueError(f"a measurement of format {raw.get('format')!r} is not known; this version reads {FORMAT}")
        try:
            levels = tuple(_level(level) for level in raw["levels"])
            answers = {prompt: Answers.from_json(one) for prompt, one in raw.get("answers", {}).items()}
            tested = SelfTest.from_json(raw["self_test"]) if "self_test" in raw else None
            return cls(levels, from_plain(raw["facts"]), tuple(raw["invalid"]), answers, tested)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"not the shape of a measurement: {error!r}") from error


def to_plain(value: Any) -> Any:
    """The value for strict JSON: infinity as "unbounded". Raises ValueError for NaN and minus infinity."""
    if isinstance(value, Mapping):
        return {key: to_plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(member) for member in value]
    if isinstance(value, float) and not math.isfinite(value):
        if value == math.inf:
            return UNBOUNDED
        raise ValueError(f"{value} must not stand in a measurement")
    return value


def _level(raw: Mapping[str, Any]) -> LevelMeasurement:
    known = {member.name for member in fields(LevelMeasurement)}
    values = {name: from_plain(value) for name, value in raw.items() if name in known}
    values["per_prompt"] = {prompt: (pair[0], pair[1]) for prompt, pair in raw["per_prompt"].items()}
    return LevelMeasurement(**values)


def from_plain(value: Any) -> Any:
    """The value that `to_plain` was given."""
    if isinstance(value, Mapping):
        return {key: from_plain(member) for key, member in value.items()}
    return math.inf if value == UNBOUNDED else value
