"""What engines tell of themselves on their metrics pages, by canonical names: one table of names, units and meanings.

Each engine says under which series it exposes a name (`MetricTable`); what it does not list is not exposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["gauge", "counter", "time"]

TO_CANONICAL: Mapping[str, float] = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "percent": 0.01}


@dataclass(frozen=True, slots=True)
class Canonical:
    """One name.

    Attributes:
        name: as records and reports have it.
        kind: a gauge is what is so now; a counter only grows while the process lives, and so does the sum of a time.
        unit: "s", "requests", "tokens", "share" (0 to 1) or "times".
        meaning: for people.
        largest: whether several series of one page are one figure by their largest, not by their sum.
    """

    name: str
    kind: Kind
    unit: str
    meaning: str
    largest: bool = False


CANONICAL: tuple[Canonical, ...] = (
    Canonical("queue_time", "time", "s", "from the request's arrival in the queue until it is scheduled"),
    Canonical("preprocess_time", "time", "s", "checking and tokenising the input"),
    Canonical("prefill_time", "time", "s", "reading the input, until the first new token"),
    Canonical("decode_time", "time", "s", "from the first to the last token"),
    Canonical("inference_time", "time", "s", "all time in the running state: prefill and decode"),
    Canonical("postprocess_time", "time", "s", "detokenising and packing the output"),
    Canonical("ttft", "time", "s", "from arrival to the first token, as the engine sees it"),
    Canonical("itl", "time", "s", "between two outputs of one request"),
    Canonical("tpot", "time", "s", "per output token after the first, one observation for each request"),
    Canonical("e2e_time", "time", "s", "from arrival to the end of the answer, as the engine sees it"),
    Canonical("running", "gauge", "requests", "requests being worked on"),
    Canonical("waiting", "gauge", "requests", "requests in the engine's queue"),
    Canonical("kv_use", "gauge", "share", "used part of the context cache; of several the fullest", largest=True),
    Canonical("preemptions", "counter", "times", "requests that lost their place in the context cache"),
    Canonical("requests_ok", "counter", "requests", "requests that ended with an answer"),
    Canonical("requests_failed", "counter", "requests", "requests that the engine ended with an error"),
    Canonical("requests_aborted", "counter", "requests", "requests that were given up, by the client as a rule"),
    Canonical("http_errors", "counter", "requests", "answers with a status of 500 or above"),
    Canonical("prompt_tokens", "counter", "tokens", "input tokens"),
    Canonical("generated_tokens", "counter", "tokens", "output tokens"),
    Canonical("cache_hits", "counter", "tokens", "input tokens that were found in a cache"),
    Canonical("cache_queries", "counter", "tokens", "input tokens that were looked for there"),
    Canonical("process_start", "gauge", "s", "when the process started, in seconds since the epoch", largest=True),
)  # fmt: skip
BY_NAME: Mapping[str, Canonical] = {row.name: row for row in CANONICAL}


@dataclass(frozen=True, slots=True)
class Series:
    """Where a name stands on a page.

    Attributes:
        name: of the series; a counter is found with and without `_total`, and with `_` for `:`, which gateways write.
        unit: in which the page has it; a key of `TO_CANONICAL`.
        histogram: the name is that of a histogram (`_sum`, `_count`, `_bucket`); else it is one number.
        where: label -> values that count; empty: all.
        none_is_zero: with `where`: such a row comes into being with the first event, so its absence among others is 0.
        plus: further series that are added; without one of them nothing can be said.
    """

    name: str
    unit: str = ""
    histogram: bool = False
    where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    none_is_zero: bool = False
    plus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MetricTable:
    """What an engine exposes: canonical name -> its series, the newest spelling first, and the label of the model."""

    series: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)
    model_label: str = ""  # "": a page is about one model
    lengths: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)  # `input`, `output`: tokens of each request
