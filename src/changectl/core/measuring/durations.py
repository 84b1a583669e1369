"""How long things took for each of many requests, and where that means nothing: what the latency metrics are.

Whole columns at a time: of hundreds of thousands of requests there are millions of durations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from changectl.core.measuring.records import Records

    Figures = npt.NDArray[np.float64]
    Marks = npt.NDArray[np.bool_]

# The metrics of which every request has a value of its own.
DURATIONS = ("ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max", "e2e_user", "e2e_sent")
# What only answers have that come token by token.
OF_TOKENS = ("ttft_user", "ttft_sent", "ttfo", "tpot", "icl_max", "out_tok_s")

_SPANS = {
    "ttft_user": ("t_planned", "t_first"),
    "ttft_sent": ("t_sent", "t_first"),
    "ttfo": ("t_sent", "t_first_output"),
    "e2e_user": ("t_planned", "t_last"),
    "e2e_sent": ("t_sent", "t_last"),
    "lag": ("t_planned", "t_start"),  # the generator's own lateness, which is no metric
}


def marks(chosen: Sequence[bool]) -> Marks:
    """A mark for each of some requests."""
    import numpy as np  # a tenth of a second to import, and not needed by most commands

    return np.array(chosen, dtype=np.bool_)


def means(numbers: Sequence[int], groups: int, values: Figures, chosen: Marks) -> list[float | None]:
    """The mean of the chosen values in each group; None: there is none. `numbers` says which group each belongs to."""
    import numpy as np

    known = chosen & (values == values)
    mine = np.array(numbers, dtype=np.int64)[known]
    sums, counts = np.bincount(mine, values[known], groups), np.bincount(mine, minlength=groups)
    return [total / count if count else None for total, count in zip(sums.tolist(), counts.tolist(), strict=True)]


class Durations:
    """Durations of some requests in seconds, each metric an array in the order of the records; NaN: no value.

    Attributes:
        field: one of the records' own numbers by its name.
    """

    def __init__(self, records: Records) -> None:
        self.field = records.figures

    def __getitem__(self, metric: str) -> Figures:
        """The values of one of `DURATIONS`, or of the generator's `lag`."""
        if metric == "icl_max":
            gap: Figures = self.field("max_gap_ns") / 1e9
            return gap
        start, end = _SPANS.get(metric, ("t_first", "t_last"))
        seconds: Figures = (self.field(end) - self.field(start)) / 1e9
        return self._per_token(seconds) if metric == "tpot" else seconds

    def all(self) -> Marks:
        """A mark for every request."""
        every: Marks = self.field("t_planned") == self.field("t_planned")
        return every

    def values(self, metric: str) -> Figures:
        """The values that there are."""
        return _known(self[metric])

    def missing(self, metric: str) -> Marks:
        """For which answers a value is not there and should be."""
        seconds = self[metric]
        lacking: Marks = (seconds != seconds) & ~self.undefined(metric)
        return lacking

    def undefined(self, metric: str) -> Marks:
        """For which answers the metric has no meaning (as against: its data is missing)."""
        import numpy as np

        first, last = self.field("t_first"), self.field("t_last")
        # An answer that came as one document: nothing of it was the first token.
        none: Marks = np.isnan(first) & ~np.isnan(last) & (metric in OF_TOKENS)
        if metric == "tpot":
            counted = self.field("n_out")
            # First and last token with one stamp: a buffer on the way, and no pace to be seen.
            none |= (counted < 2) | ((first == last) & ~np.isnan(counted))
        elif metric == "icl_max":
            none |= self.field("chunks") == 1
        elif metric == "ttfo":
            none |= ~np.isnan(first) & np.isnan(self.field("t_first_output"))
        return none

    def _per_token(self, seconds: Figures) -> Figures:
        import numpy as np

        gaps = self.field("n_out") - 1
        gaps[(gaps < 1) | (seconds == 0)] = np.nan
        return seconds / gaps

    def known(self, name: str) -> Figures:
        """The values of a field that there are."""
        return _known(self.field(name))

    def total(self, name: str) -> int | None:
        """The sum of a field of whole numbers; None where one is not known: a sum over some would look like a loss."""
        values = self.field(name)
        return int(values.sum()) if (values == values).all() else None


def _known(figures: Figures) -> Figures:
    found: Figures = figures[figures == figures]
    return found
