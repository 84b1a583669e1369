"""The throughput of a closed level while all of its streams ran: the same for a short level as for a long one.

Good answers by the whole window count the end, in which streams have stopped and the last answers are waited for. Where
one phase is shorter than another, that weighs more, and would look like lost throughput.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from changectl.core.measuring.durations import Durations, Marks


@dataclass(frozen=True, slots=True)
class Throughput:
    """Good answers and their output tokens per second; of the latter None: not counted for every one."""

    answers: float
    tokens: float | None


def steady(sent: Durations, good: Marks, seconds: float) -> Throughput | None:
    """The throughput from the moment when the last stream had begun to the one from which on no request began.

    A request at an edge counts by the share of its time that lies within: streams that are always busy so answer one
    request in the mean time of a request, wherever the edges are, and one that hangs there counts as long as it hangs.

    Args:
        sent: the level's requests.
        good: which of them got a good answer.
        seconds: after which no request began, from the first one's moment.

    Returns:
        None: there is no such time, or a request's end is not known.
    """
    import numpy as np  # a tenth of a second to import, and not needed by most commands

    begun, ended, stream = sent.field("t_planned"), sent.field("t_end"), sent.field("stream")
    if not len(begun) or not (begun < ended).all():
        return None
    begin = max(begun[stream == one].min() for one in set(stream.tolist()))
    end = begun.min() + seconds * 1e9
    if end <= begin:
        return None
    shares = ((ended.clip(begin, end) - begun.clip(begin, end)) / (ended - begun))[good]
    tokens = sent.field("n_out")[good]
    whole = bool((tokens == tokens).all())
    window = (end - begin) / 1e9
    return Throughput(float(shares.sum() / window), float(np.dot(shares, tokens) / window) if whole else None)
