"""How exactly this program tells time on this host now, held against a server of known pace: nothing of it is judged.

The service has no part in it, so what is found is the client's own doing: of its event loop, its Python, and whatever
else the host does meanwhile.
"""

from __future__ import annotations

import math
from time import perf_counter
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from changectl.adapters.loadgen import loop as event_loop
from changectl.adapters.loadgen.client import Client
from changectl.adapters.loadgen.closed_level import ClosedRun
from changectl.adapters.loadgen.job import Endpoint, Item, Job, Level
from changectl.adapters.loadgen.salt import salt
from changectl.adapters.loadgen.stub import HOST, Pace, Stamps, Stub

TRIES = 5  # a moment in which the host was busy is over by then; one that stays busy is what is looked for
LONGEST = 2.0  # seconds after which no further try begins: a host that takes so long for one is none to measure from
STREAMS, REQUESTS = 8, 24
PACE = Pace(first=0.020, each=0.004, pieces=9)
STAGGER = 0.007  # begun at once, all pieces would come at once: that measures the event loop's queue alone
SALT, LEVEL = "self-test", Level("self-test", STREAMS, None, REQUESTS)
FIGURES = ("ttft_p50", "ttft_p99", "tpot_p50", "tpot_p99", "lag_p99")


def self_test(limits: Mapping[str, float], pace: Pace = PACE) -> Dict[str, Any]:
    """Send to the server of known pace, again while a figure is beyond its limit.

    Args:
        limits: figure -> seconds within which it need not be tried again.
        pace: of the server.

    Returns:
        `tries`: what each try found, in seconds: the errors of the times to first token and per output token, and how
        late requests were begun (P99: the worst of so few), or a `problem`; `requests` of a try; `seconds` of all.
    """
    begun = perf_counter()
    tries: List[Dict[str, Any]] = []
    while not tries or (len(tries) < TRIES and perf_counter() - begun < LONGEST and not _within(tries[-1], limits)):
        try:
            tries.append(_tried(pace))
        except (OSError, ValueError, KeyError) as error:  # no room, no loopback; answers that are not the server's
            tries.append({"problem": str(error) or type(error).__name__})
    return {"tries": tries, "requests": REQUESTS, "seconds": round(perf_counter() - begun, 3)}


def _within(figures: Mapping[str, Any], limits: Mapping[str, float]) -> bool:
    return all(figures.get(name, math.inf) <= limits.get(name, math.inf) for name in FIGURES)


def _tried(pace: Pace) -> Dict[str, Any]:
    stub = Stub(pace)
    records: Sequence[Mapping[str, Any]] = ()
    try:
        job = _job(stub.port, pace)
        run = ClosedRun(LEVEL, job.workload, Client(job, HOST, 0), 0, job.stagger)
        event_loop.run(run.run())
        records = run.records
    finally:
        stamps = stub.stamps()
    errors = [_errors(record, stamps, pace) for record in records]
    first, each, late = ([error[place] for error in errors] for place in range(3))
    found = (_rank(first, 50), max(first), _rank(each, 50), max(each), max(late))
    return {name: round(value / 1e9, 9) for name, value in zip(FIGURES, found)}  # noqa: B905  Python 3.8


def _job(port: int, pace: Pace) -> Job:
    """A job as any other, so that all that stamps the service's answers stamps these."""
    return Job(
        endpoint=Endpoint(False, HOST, port, ""),
        protocol="openai_completions",
        headers=[],
        model="self-test",
        workload=[Item(SALT, {"prompt": ""}, pace.pieces)],
        levels=[LEVEL],
        salt=SALT,
        seed=0,
        deadline=2.0,
        connect_timeout=1.0,
        stagger=STAGGER,
        include_usage=True,
        body={},
        tls_verify=True,
        tls_ca=None,
        cpus=None,
        self_test=None,
        relay=None,
    )


def _errors(record: Mapping[str, Any], stamps: Stamps, pace: Pace) -> Tuple[float, float, float]:
    """By how many nanoseconds the first token, the time per token and the beginning were off."""
    if record["cls"] != "ok":
        raise ValueError("a request to the server of known pace ended as {cls}: {error}".format(**record))
    taken, *sent = stamps[salt(SALT, LEVEL.name, record["round"], SALT)]
    if record["t_sent"] > taken or record["t_first"] < sent[0] or len(sent) != pace.pieces:
        raise ValueError("the clocks of two processes of this host disagree")
    spread = (record["t_last"] - record["t_first"]) - (sent[-1] - sent[0])
    return record["t_first"] - sent[0], abs(spread) / (pace.pieces - 1), record["t_start"] - record["t_planned"]


def _rank(values: List[float], percent: int) -> float:
    """Nearest-rank percentile."""
    return sorted(values)[math.ceil(len(values) * percent / 100) - 1]
