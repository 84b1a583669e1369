"""The catalogue of metrics: what each is, which way is better, what is harm. A plan knows no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from changectl.core.units import OUTPUT_RATE, RATE, SECONDS, SHARE, TOKENS

STATISTICS = ("p50", "p95", "p99", "mean")
CLASSES = ("interactive", "offline")

Source = Literal["load", "start", "engine", "answers"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One measured quantity.

    Attributes:
        name: how plans write it.
        unit: of its values, as in `units`.
        better: which direction is good.
        meaning: one sentence for people.
        statistics: which statistics exist; empty: the metric is one figure per level (or per phase).
        floor: differences smaller than this (in `unit`) are never harm.
        margins: per service class, the default relative margin (absolute for shares) of the median or of the figure;
            a class that is not named does not guard this metric.
        source: "load": from the generator's requests; "start": from starting the service; "engine": the engine says it;
            "answers": from comparing the answers of both configurations.
        per_level: whether it exists once per load level, or once per phase.
    """

    name: str
    unit: str
    better: Literal["lower", "higher"]
    meaning: str
    statistics: tuple[str, ...] = ()
    floor: float = 0.0
    margins: tuple[tuple[str, float], ...] = ()
    source: Source = "load"
    per_level: bool = True

    def margin(self, service_class: str, statistic: str | None = None) -> float | None:
        """The default margin in a class of service (P95 twice, P99 four times the median's); None: no guard there."""
        base = dict(self.margins).get(service_class)
        return None if base is None else base * {"p95": 2, "p99": 4}.get(statistic or "", 1)

    def worse_by(self, before: float, after: float) -> float:
        """How much worse in the metric's own unit; negative: better."""
        return after - before if self.better == "lower" else before - after


_BOTH = (("interactive", 0.05), ("offline", 0.05))
_INTERACTIVE = (("interactive", 0.05),)
_SHARES = (("interactive", 0.005), ("offline", 0.005))

_CATALOGUE = (
    Metric(
        "ttft_user",
        SECONDS,
        "lower",
        "time to the first token, from the moment the request was due",
        STATISTICS,
        0.005,
        _INTERACTIVE,
    ),
    Metric(
        "ttft_sent",
        SECONDS,
        "lower",
        "time to the first token, from the moment the request was sent",
        STATISTICS,
        0.005,
    ),
    Metric("ttfo", SECONDS, "lower", "time to the first token that is not reasoning, from sending", STATISTICS, 0.005),
    Metric("tpot", SECONDS, "lower", "time per output token after the first", STATISTICS, 0.001, _INTERACTIVE),
    Metric("icl_max", SECONDS, "lower", "longest gap between two pieces of one answer", STATISTICS, 0.005),
    Metric(
        "e2e_user",
        SECONDS,
        "lower",
        "time to the last token, from the moment the request was due",
        STATISTICS,
        0.010,
        _BOTH,
    ),
    Metric(
        "e2e_sent", SECONDS, "lower", "time to the last token, from the moment the request was sent", STATISTICS, 0.010
    ),
    Metric("rps_ok", RATE, "higher", "good answers per second", margins=_BOTH),
    Metric("out_tok_s", OUTPUT_RATE, "higher", "output tokens of good answers per second", margins=_BOTH),
    Metric(
        "goodput", SHARE, "higher", "share of the requests with a good answer within every latency limit of the slo"
    ),
    Metric("failures", SHARE, "lower", "share of the requests that did not get a good answer", margins=_SHARES),
    Metric(
        "load_time",
        SECONDS,
        "lower",
        "from the process's start to the first real answer",
        source="start",
        per_level=False,
        floor=1.0,
    ),
    Metric(
        "kv_capacity",
        TOKENS,
        "higher",
        "tokens that the engine's context cache holds",
        margins=_BOTH,
        source="engine",
        per_level=False,
    ),
    Metric(
        "disagreement",
        SHARE,
        "lower",
        "share of the answers to quality prompts that are not what the saved configuration answers",
        source="answers",
        per_level=False,
    ),
    Metric(
        "wrong_answers",
        SHARE,
        "lower",
        "share of the answers to quality prompts without the text that the workload expects in them",
        source="answers",
        per_level=False,
    ),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _CATALOGUE}
