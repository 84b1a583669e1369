"""One request as the load generator saw it, and the durations that follow from its time stamps."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

OK = "ok"
EMPTY = "empty"
UNEXPECTED = "unexpected"  # a whole answer without the text that the workload says has to be in it
CLIENT_LIMIT = "client_limit"  # the sender's own host had no room for the request: not the service's failure

# What only answers have that come token by token.
OF_TOKENS = ("ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max", "out_tok_s")

_INTEGERS = ("i", "stream", "round", "t_planned", "chunks")
_OPTIONAL_INTEGERS = (
    "t_start",
    "t_sent",
    "t_headers",
    "t_first",
    "t_first_output",
    "t_last",
    "t_end",
    "n_out",
    "n_in",
    "cached",
    "max_gap_ns",
    "status",
    "turn",
)
_TEXTS = ("level", "prompt", "cls")
_OPTIONAL_TEXTS = ("finish", "error", "text_sha", "text")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One scheduled request. Time stamps are nanoseconds since the start of the phase on a clock that only grows.

    None means "did not happen" or "the server did not say", never zero.
    """

    i: int
    level: str
    stream: int
    prompt: str
    round: int
    t_planned: int
    cls: str  # "ok", or the class of failure
    t_start: int | None = None
    t_sent: int | None = None
    t_headers: int | None = None
    t_first: int | None = None
    t_first_output: int | None = None
    t_last: int | None = None
    t_end: int | None = None
    n_out: int | None = None
    n_in: int | None = None
    cached: int | None = None
    chunks: int = 0
    max_gap_ns: int | None = None
    finish: str | None = None
    status: int | None = None
    error: str | None = None
    text_sha: str | None = None
    text: str | None = None
    turn: int | None = None  # of a conversation, from 1

    @property
    def ok(self) -> bool:
        """Whether the request got a good, whole answer in time."""
        return self.cls == OK

    @property
    def whole(self) -> bool:
        """Whether the answer came as one document, so that nothing of it was the first token."""
        return self.t_last is not None and self.t_first is None

    @property
    def lag(self) -> float | None:
        """Seconds between the moment the request was due and the moment the generator took it up."""
        return _seconds(self.t_planned, self.t_start)

    def duration(self, metric: str) -> float | None:
        """The request's value of a latency metric in seconds; None: not known or not defined for this answer."""
        if metric == "tpot":
            return self._per_token()
        if metric == "icl_max":
            return None if self.max_gap_ns is None else self.max_gap_ns / 1e9
        start, end = {
            "ttft_user": (self.t_planned, self.t_first),
            "ttft_sent": (self.t_sent, self.t_first),
            "ttfo": (self.t_sent, self.t_first_output),
            "e2e_user": (self.t_planned, self.t_last),
            "e2e_sent": (self.t_sent, self.t_last),
        }[metric]
        return _seconds(start, end)

    def undefined(self, metric: str) -> bool:
        """Whether the metric has no meaning for this answer (as against: its data is missing)."""
        if self.whole:
            return metric in OF_TOKENS
        if metric == "tpot":
            return self.n_out is not None and (self.n_out < 2 or self._came_at_once)
        if metric == "icl_max":
            return self.chunks == 1
        return metric == "ttfo" and self.t_first is not None and self.t_first_output is None

    def _per_token(self) -> float | None:
        span = _seconds(self.t_first, self.t_last)
        if span is None or self.n_out is None or self.undefined("tpot"):
            return None
        return span / (self.n_out - 1)

    @property
    def _came_at_once(self) -> bool:
        """Whether first and last token have one stamp: a buffer on the way, and no pace to be seen."""
        return self.t_first is not None and self.t_first == self.t_last


def _seconds(start: int | None, end: int | None) -> float | None:
    return None if start is None or end is None else (end - start) / 1e9


def parse_record(line: str) -> Record:
    """The record of one JSON line.

    Raises:
        ValueError: not JSON, a field missing, or of another type.
    """
    try:
        raw = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"a request record is not whole: {error}") from error
    fields = raw if isinstance(raw, dict) else {}
    values: dict[str, Any] = {}
    for names, kind, optional in (
        (_INTEGERS, int, False),
        (_OPTIONAL_INTEGERS, int, True),
        (_TEXTS, str, False),
        (_OPTIONAL_TEXTS, str, True),
    ):
        for name in names:
            values[name] = _field(fields, name, kind, optional=optional)
    return Record(**values)


def _field(raw: Mapping[str, Any], name: str, kind: type, *, optional: bool) -> Any:
    value = raw.get(name)
    if value is None and optional:
        return None
    if isinstance(value, kind) and not isinstance(value, bool):
        return value
    raise ValueError(f'field "{name}" of a request record is {value!r}, not {kind.__name__}')


def parse_records(lines: Iterable[str]) -> tuple[Record, ...]:
    """All records of the generator's output, blank lines left out.

    Raises:
        ValueError: a line that is no record; the text names the line.
    """
    records = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                records.append(parse_record(line))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
    return tuple(records)
