"""One request as the load generator saw it."""

from __future__ import annotations

from math import isnan
from typing import NamedTuple

from changectl.core.durations import Durations

OK = "ok"
EMPTY = "empty"
UNEXPECTED = "unexpected"  # a whole answer without the text that the workload says has to be in it
NOT_SENT = "not_sent"  # a later turn of a conversation that ended before: it was due, and there was nothing to answer
CLIENT_LIMIT = "client_limit"  # the sender's own host had no room for the request: not the service's failure

NO_WAY = frozenset({"connect_timeout", "connect_error"})  # the network's doing, or that of a host which is gone


class Record(NamedTuple):
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

    def duration(self, metric: str) -> float | None:
        """The request's value of a latency metric in seconds; None: not known or not defined for this answer."""
        value = float(Durations([self])[metric][0])
        return None if isnan(value) else value

    def undefined(self, metric: str) -> bool:
        """Whether the metric has no meaning for this answer (as against: its data is missing)."""
        return bool(Durations([self]).undefined(metric)[0])
