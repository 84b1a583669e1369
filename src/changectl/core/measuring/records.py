"""Requests as the load generator saw them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from math import isnan
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from changectl.core.measuring.durations import Durations, marks

if TYPE_CHECKING:
    from changectl.core.measuring.durations import Figures

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
        value = float(Durations(Records.of([self]))[metric][0])
        return None if isnan(value) else value

    def undefined(self, metric: str) -> bool:
        """Whether the metric has no meaning for this answer (as against: its data is missing)."""
        return bool(Durations(Records.of([self])).undefined(metric)[0])


NUMBERS = frozenset(name for name, kind in get_type_hints(Record).items() if kind in (int, int | None))
EXACT = 2**53  # below it a column of numbers holds whole ones as they are: in nanoseconds 104 days


class Records:
    """Many requests in order, as columns: what is worked out of hundreds of thousands needs none of them as one."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        """Take each field's values of all requests: what `figures` makes of `NUMBERS`, the others as they are."""
        self._columns = columns

    @classmethod
    def of(cls, records: Iterable[Record]) -> Records:
        """Those records, as columns. Raises ValueError as `figures` does."""
        if isinstance(records, Records):
            return records
        rows = list(records)
        columns = zip(Record._fields, zip(*rows, strict=True) if rows else repeat(()), strict=False)
        return cls({name: figures(values) if name in NUMBERS else values for name, values in columns})

    def texts(self, field: str) -> Sequence[Any]:
        """One field of all requests that is no number."""
        values: Sequence[Any] = self._columns[field]
        return values

    def figures(self, field: str) -> Figures:
        """One of `NUMBERS` of all requests; NaN: not there."""
        values: Figures = self._columns[field]
        return values

    def only(self, chosen: Sequence[bool]) -> Records:
        """The chosen requests."""
        return self if all(chosen) else Records(_Chosen(self._columns, chosen))

    def __len__(self) -> int:
        return len(self.texts("cls"))

    def __iter__(self) -> Iterator[Record]:
        columns = (_whole(self.figures(name)) if name in NUMBERS else self.texts(name) for name in Record._fields)
        return map(Record._make, zip(*columns, strict=True))


class _Chosen(dict[str, Any]):
    """Columns of some of the requests, each made when it is asked for: few of them are."""

    def __init__(self, columns: Mapping[str, Any], chosen: Sequence[bool]) -> None:
        super().__init__()
        self._all, self._chosen, self._marks = columns, chosen, marks(chosen)

    def __missing__(self, field: str) -> Any:
        values = self._all[field]
        self[field] = values[self._marks] if field in NUMBERS else list(compress(values, self._chosen))
        return self[field]


def figures(values: Sequence[int | None]) -> Figures:
    """A column of whole numbers; None becomes NaN. Raises ValueError for a number that is not below `EXACT`."""
    import numpy as np  # a tenth of a second to import, and not needed by most commands

    try:
        column = np.array(values, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(str(error)) from error
    if (abs(column) >= EXACT).any():
        raise ValueError(f"a number that is not below {EXACT}")
    return column


def _whole(column: Figures) -> list[int | None]:
    return [int(value) if value == value else None for value in column.tolist()]
