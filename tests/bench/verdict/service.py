"""The service that the simulated worlds serve, its prompts, and how what they did becomes the generator's output.

Nothing here knows of figures: what comes out are lines of request records, as the load generator writes them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from changectl.adapters.loadgen.schedule import arrivals
from changectl.core.declared.levels import DEFAULT_SECONDS
from changectl.core.measuring.level_size import STAGGER, LevelSize
from changectl.core.trial.order import Times
from changectl.core.units import LevelLoad

Array = npt.NDArray[np.float64]
NS = 1e9
PROMPTS = 40
TTFT, PACE = 0.300, 0.030  # seconds to the first token and per token after it: 5 % of either is above its floor
REQUEST_SD = 0.03  # from one request to the next, of the same prompt
FAILURE_PAUSE = 0.1  # seconds that a stream waits after a failed request, as the generator does
KV_CAPACITY = 60_000
_LAG, _WIRE = 0.0003, 0.0002  # seconds: the generator's own lateness, and from the last token to the end of the stream


@dataclass(frozen=True)
class Prompts:
    """The workload: by how much each prompt is slower to its first token, and what it puts in and gets out."""

    slower: Array
    n_in: npt.NDArray[np.int64]
    n_out: npt.NDArray[np.int64]


def _prompts() -> Prompts:
    chance = np.random.default_rng(20_261_130)
    slower = np.exp(chance.normal(0, 0.1, PROMPTS))
    return Prompts(slower, chance.integers(200, 400, PROMPTS), chance.integers(16, 25, PROMPTS))


WORKLOAD = _prompts()


@dataclass(frozen=True)
class Shape:
    """What is measured in each phase: the levels, the class of the service, and so how many figures are guarded.

    Attributes:
        name: as tables show it.
        loads: the name and load of each level.
        service_class: which metrics are guarded by default.
    """

    name: str
    loads: tuple[tuple[str, LevelLoad], ...]
    service_class: str = "interactive"

    @property
    def levels(self) -> dict[str, LevelLoad]:
        """The loads by name."""
        return dict(self.loads)

    @property
    def sizes(self) -> dict[str, LevelSize]:
        """Each level lasts as long as one does where neither plan nor service says anything."""
        return {name: LevelSize(load, DEFAULT_SECONDS) for name, load in self.loads}

    @property
    def times(self) -> Times:
        """A load of 30 s, 10 s until it is warm, and the levels one after the other."""
        return Times(load=30.0, phase=10.0 + DEFAULT_SECONDS * len(self.loads), swap=2.0)


def _streams(*numbers: int) -> tuple[tuple[str, LevelLoad], ...]:
    return tuple((f"{number} streams", LevelLoad(streams=number)) for number in numbers)


EIGHT = Shape("8", _streams(8))
TWELVE = Shape("12", _streams(4, 6, 8), "offline")
TWENTY_ONE = Shape("21", _streams(4, 5, 6, 7, 8), "offline")
USUAL = Shape("24", (("low", LevelLoad(streams=4)), ("normal", LevelLoad(streams=8)), ("peak", LevelLoad(rate=8.0))))


@dataclass
class Requests:
    """What the requests of one level met, in the order in which they were sent: arrays of one length.

    Attributes:
        first: seconds to the first token.
        pace: seconds per token after it.
        prompt: which of the workload's.
        failed: whether there was no good answer.
        cached: share of the input that came from a cache; None: the server does not say.
        counted: whether the server said how many tokens it put out.
    """

    first: Array
    pace: Array
    prompt: npt.NDArray[np.int64]
    failed: npt.NDArray[np.bool_]
    cached: float | None = 0.0
    counted: npt.NDArray[np.bool_] = field(default_factory=lambda: np.ones(0, dtype=np.bool_))
    refusal: float = 0.005  # seconds until a failed request is refused

    @property
    def answer(self) -> Array:
        """Seconds until the last token."""
        return self.first + (WORKLOAD.n_out[self.prompt] - 1) * self.pace


def capacity(load: LevelLoad, fastest: float) -> int:
    """As many requests as a level can get at most, where each takes `fastest` seconds or more; whole rounds of it."""
    if load.rate is not None:
        return max(1, round(load.rate * DEFAULT_SECONDS))
    assert load.streams
    return load.streams * (int(DEFAULT_SECONDS / fastest) + 2)


def planned(name: str, load: LevelLoad, requests: Requests) -> tuple[Array, npt.NDArray[np.int64]]:
    """When each request was due, in seconds from the level's beginning, and on which stream it was sent."""
    if load.streams is None:
        due = np.array(arrivals(7, name, len(requests.first), DEFAULT_SECONDS)) / NS
        return due, np.zeros(len(due), dtype=np.int64)
    taken = np.where(requests.failed, requests.refusal + FAILURE_PAUSE, requests.answer + _LAG + _WIRE)
    ends = np.cumsum(taken.reshape(-1, load.streams), axis=0)
    begin = np.arange(load.streams) * STAGGER
    due = np.vstack([np.zeros(load.streams), ends[:-1]]) + begin
    stream = np.broadcast_to(np.arange(load.streams), due.shape)
    return due.ravel(), stream.ravel()


def written(name: str, load: LevelLoad, begin: float, requests: Requests) -> tuple[list[str], float]:
    """The generator's lines of one level that begins `begin` seconds after the phase, and when it was over."""
    due, stream = planned(name, load, requests)
    sent = np.flatnonzero(due < DEFAULT_SECONDS)
    order = sent[np.argsort(due[sent], kind="stable")]
    columns, last = _columns(name, requests, order, begin + due[order], stream[order])
    fields = sorted(columns)
    rows = json.dumps(list(zip(*(columns[one] for one in fields), strict=False)))
    # The same bytes as line by line, several times as fast: no text of these records holds a bracket.
    return [json.dumps({"fields": fields}), *(f"[{row}]" for row in rows[2:-2].split("], ["))], last


def _columns(
    name: str, requests: Requests, order: npt.NDArray[np.int64], due: Array, stream: npt.NDArray[np.int64]
) -> tuple[dict[str, Any], float]:
    prompt, failed = requests.prompt[order], requests.failed[order]
    started = due + _LAG
    first, last = started + requests.first[order], started + requests.answer[order]
    ended = np.where(failed, started + requests.refusal, last + _WIRE)
    n_out, bad = WORKLOAD.n_out[prompt], failed.tolist()
    counted = requests.counted[order] if len(requests.counted) else ~failed
    n_in = _where(WORKLOAD.n_in[prompt], bad)
    cached = repeat(None) if requests.cached is None else [
        None if one is None else int(one * requests.cached) for one in n_in
    ]  # fmt: skip
    return {
        "i": range(len(order)),
        "level": repeat(name),
        "stream": stream.tolist(),
        "prompt": [f"p{one}" for one in prompt.tolist()],
        "round": (np.arange(len(order)) // PROMPTS).tolist(),
        "t_planned": _ns(due),
        "cls": ["http_5xx" if one else "ok" for one in bad],
        "t_start": _ns(started),
        "t_sent": _ns(started),
        "t_headers": _ns(started),
        "t_first": _where(_ns(first), bad),
        "t_first_output": _where(_ns(first), bad),
        "t_last": _where(_ns(last), bad),
        "t_end": _ns(ended),
        "n_out": _where(n_out, (~counted | failed).tolist()),
        "n_in": n_in,
        "cached": cached,
        "chunks": np.where(failed, 0, n_out).tolist(),
        "max_gap_ns": _where(_ns(requests.pace[order]), bad),
        "finish": [None if one else "stop" for one in bad],
        "status": [503 if one else 200 for one in bad],
        "error": repeat(None),
        "text_sha": repeat(None),
        "text": repeat(None),
        "turn": repeat(None),
    }, float(ended.max())


def _ns(seconds: Array) -> list[int]:
    found: list[int] = (seconds * NS).astype(np.int64).tolist()
    return found


def _where(values: Sequence[int] | npt.NDArray[np.int64], hidden: Sequence[bool]) -> list[int | None]:
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return [None if out else one for one, out in zip(listed, hidden, strict=True)]
