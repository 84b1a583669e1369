"""How late does the load generator send? On one core, with a server of a known pace on the other, beside a rival.

Two figures: the lateness (P99) with 64 streams, and the highest rate of an open level at which it stays below the
floor. A request without a good answer counts as infinitely late.

The rival is the usual client on asyncio (with aiohttp where its interpreter has it: CHANGECTL_BENCH_RIVAL_PYTHON names
one, for example that of aiperf, whose client aiohttp is). It sends as planned too, and stamps when it got round to it.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.bench import bench_generator as base
from tests.bench.table import Row

from changectl.adapters.loadgen import build_zip
from changectl.adapters.loadgen.schedule import arrivals
from changectl.core.measuring.measurement import parse_records

STREAMS, SECONDS, STAGGER = 64, 6.0, 0.01
RATES, RATE_SECONDS = (100, 200, 300, 400, 500, 600, 800, 1000), 4.0
FLOOR, LEAST_RATE = 5.0, 200  # ms; requests per second
CLOSED = base.Pace(ttft=0.05, tpot=0.015, tokens=24)
OPEN = base.Pace(ttft=0.02, tpot=0.005, tokens=4)
Side = Callable[[Path, dict[str, object], base.Pace], list[float]]
RIVAL_PYTHON = os.environ.get("CHANGECTL_BENCH_RIVAL_PYTHON", sys.executable)


def closed(streams: int, seconds: float) -> dict[str, object]:
    """Streams that each send the next request when their last one is answered."""
    return {"name": "peak", "streams": streams, "seconds": seconds}


def opened(rate: float, seconds: float) -> dict[str, object]:
    """Requests on a schedule."""
    return {"name": "peak", "arrivals": "poisson", "requests": round(rate * seconds), "seconds": seconds}


def ours(folder: Path, level: dict[str, object], pace: base.Pace) -> list[float]:
    """How late the packed generator began each request, in ms; infinite: it got no good answer."""
    program = folder / "generator.pyz"
    program.write_bytes(build_zip())
    job = {"protocol": "openai_completions", "model": "m", "salt": "bench", "deadline": 30, "stagger": STAGGER}
    job.update(workload=[{"id": "a", "prompt": "hello", "max_tokens": pace.tokens}], levels=[level])
    _, output, _ = base.one_run([sys.executable, "-I", str(program)], job, folder, pace)
    records = parse_records(output)
    return [(one.t_start - one.t_planned) / 1e6 if one.ok and one.t_start else float("inf") for one in records]


def rival(folder: Path, level: dict[str, object], pace: base.Pace) -> list[float]:
    """The same of the rival."""
    rate = level.get("requests")
    job: dict[str, object] = {"streams": level.get("streams"), "seconds": level["seconds"], "stagger": STAGGER}
    if rate is not None:
        job = {"schedule": arrivals(0, "peak", int(str(rate)), float(str(level["seconds"])))}
    _, output, _ = base.one_run([RIVAL_PYTHON, str(base.HERE / "rival.py")], job, folder, pace)
    return [(begun - due) / 1e6 for _, due, begun, *_ in json.loads(output)]


def highest(side: Side, folder: Path) -> tuple[int, float]:
    """The highest rate at which a side is not late, with its lateness; 0: none."""
    best = (0, float("inf"))
    for rate in RATES:
        late = base.percentile(side(folder, opened(rate, RATE_SECONDS), OPEN), 99)
        if late >= FLOOR:
            break
        best = (rate, late)
    return best


def run() -> list[Row]:
    """Two floors."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        late = [base.percentile(side(folder, closed(STREAMS, SECONDS), CLOSED), 99) for side in (ours, rival)]
        (mine, _), (theirs, _) = (highest(side, folder) for side in (ours, rival))
    note = f"{base.pinning()}; rival: {base.rival_name(RIVAL_PYTHON)}"
    rates = f"{mine} a second, the rival {theirs}; rates tried up to {RATES[-1]}; {note}"
    return [
        Row("lag", f"lateness P99 at {STREAMS} streams", f"under {FLOOR:g} ms", late[0], FLOOR, late[1], "ms", note),
        Row("lag", f"time per request at the highest rate with P99 under {FLOOR:g} ms", f"{LEAST_RATE} a second",
            1000 / mine if mine else float("inf"), 1000 / LEAST_RATE, 1000 / theirs if theirs else None, "ms", rates),
    ]  # fmt: skip
