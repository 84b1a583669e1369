"""The part of a service file that says where a generic engine shows its own figures."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from changectl.core.declared.fields import Line, is_template, text_of
from changectl.core.declared.grammar import Grammar, fault

_PAGE = re.compile(r"(:\d{1,5})?/\S*")


class GenericSeries(Grammar):
    """One figure on the page; a bare name is `{series: NAME}`."""

    series: Line = Field(description="its name on the page", examples=["app_queue_seconds"])
    unit: Literal["s", "ms", "us", "ns", "percent"] | None = Field(
        None, description="of a time (seconds when left out), or `percent` of a share that goes to 100"
    )
    histogram: bool = Field(False, description="whether it is a histogram, with `_sum`, `_count` and `_bucket`")


def _series(value: Any) -> Any:
    return {"series": value} if isinstance(value, str) else value


Figure = Annotated[GenericSeries | None, BeforeValidator(_series)]


def _page(value: Any) -> str:
    text = text_of(value)
    if not is_template(text) and not _PAGE.fullmatch(text):
        hint = 'write `page: /metrics`, or with a port of its own `page: ":8082/metrics"`'
        raise fault(f"`{text}` is no place of a page", hint)
    return text


MetricsPage = Annotated[
    str, BeforeValidator(_page), WithJsonSchema({"type": "string", "examples": ["/metrics", ":8082/metrics"]})
]


class GenericMetrics(Grammar):
    """Where a generic engine shows its own figures, by canonical names."""

    page: MetricsPage = Field(description="path of its Prometheus page, or port and path", examples=["/metrics"])
    waiting: Figure = Field(None, description="gauge: requests that wait", examples=["app_queue_depth"])
    running: Figure = Field(None, description="gauge: requests in work", examples=["app_in_flight"])
    tokens: Figure = Field(None, description="counter: tokens generated", examples=["app_tokens_total"])
    kv_use: Figure = Field(None, description="gauge: used share of the context cache")
    queue_time: Figure = Field(None, description="seconds in the queue", examples=["{series: app_queue_ms, unit: ms}"])
    preprocess_time: Figure = Field(None, description="seconds of checking and tokenising the input")
    prefill_time: Figure = Field(None, description="seconds until the first new token")
    decode_time: Figure = Field(None, description="seconds from the first to the last token")
    inference_time: Figure = Field(None, description="seconds in work: prefill and decode")
    postprocess_time: Figure = Field(None, description="seconds of detokenising and packing the output")
    ttft: Figure = Field(None, description="seconds to the first token, as the engine sees it")
    itl: Figure = Field(None, description="seconds between two outputs of one request")
    tpot: Figure = Field(None, description="seconds for each token after the first")
    e2e_time: Figure = Field(None, description="seconds to the end of the answer, as the engine sees it")
    preemptions: Figure = Field(None, description="counter: requests that lost their place in the cache")
    requests_ok: Figure = Field(None, description="counter: requests that ended with an answer")
    requests_failed: Figure = Field(None, description="counter: requests that ended with an error")
    requests_aborted: Figure = Field(None, description="counter: requests that were given up")
    http_errors: Figure = Field(None, description="counter: answers with a status of 500 or above")
    prompt_tokens: Figure = Field(None, description="counter: input tokens")
    cache_hits: Figure = Field(None, description="counter: input tokens found in a cache")
    cache_queries: Figure = Field(None, description="counter: input tokens looked for there")
    process_start: Figure = Field(None, description="gauge: when the process started, since the epoch")
