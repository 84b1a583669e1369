"""How long judging takes: 300,000 raw records, as the load generator writes them, to the verdict of a trial.

Eight phases (four pairs) of two levels, read, summarised and judged one after the other, as a trial does. The rival
reads the same requests as one JSON object a line, each with the library's `json.loads`, and does nothing with them.
"""

from __future__ import annotations

import json
import random
import statistics
import time
from collections.abc import Callable

from tests.bench.table import Row

from changectl.core.judging.conditions import Fingerprint
from changectl.core.measuring.level_size import LevelSize
from changectl.core.measuring.measurement import parse_records, summarise
from changectl.core.measuring.metrics import parse_guard
from changectl.core.trial.order import looks, order
from changectl.core.trial.phases import TrialPhase
from changectl.core.trial.verdict import judge_trial
from changectl.core.units import LevelLoad

RECORDS, PAIRS, LIMIT, ROUNDS = 300_000, 4, 2.0, 5
MS = 1_000_000
SLO = (parse_guard("ttft_user_p95", "<= 800ms"), parse_guard("tpot_p95", "<= 45ms"))


def request(number: int, level: str, stream: int, chance: random.Random) -> dict[str, object]:
    """What the generator says of one request of a sound level."""
    due = number * 12 * MS
    first = due + int(chance.gauss(100, 5) * MS)
    last = first + int(chance.gauss(400, 10) * MS)
    return {
        "i": number, "level": level, "stream": stream, "prompt": f"p{number % 40}", "round": number // 40,
        "t_planned": due, "t_start": due + chance.randrange(MS), "t_sent": due + MS, "t_headers": due + 2 * MS,
        "t_first": first, "t_first_output": first, "t_last": last, "t_end": last + MS, "n_out": 24, "n_in": 40,
        "cached": 0, "chunks": 24, "max_gap_ns": 30 * MS, "finish": "length", "status": 200, "error": None,
        "text_sha": f"{chance.getrandbits(256):064x}", "text": None, "turn": None, "cls": "ok",
    }  # fmt: skip


def phase(records: int, seed: int) -> list[dict[str, object]]:
    """A closed level and an open one, half of the records each."""
    chance, half = random.Random(seed), records // 2
    low = [request(number, "low", number % 8, chance) for number in range(half)]
    return low + [request(number, "peak", 0, chance) for number in range(half)]


def as_written(requests: list[dict[str, object]]) -> str:
    """One phase's records as the generator writes them."""
    fields = sorted(requests[0])
    rows = [[each[name] for name in fields] for each in requests]
    return "\n".join(json.dumps(line) for line in ({"fields": fields}, *rows))


def judge(texts: list[str], records: int) -> str:
    """From the raw text of all phases to a verdict; what it is."""
    each = records // 2
    sizes = {
        "low": LevelSize(LevelLoad(streams=8), requests=each),
        "peak": LevelSize(LevelLoad(rate=1000 / 12), each * 12 / 1000),
    }
    phases = []
    for number, (letter, text) in enumerate(zip(order(PAIRS), texts, strict=True), start=1):
        facts = {"settings": {"slots": "4" if letter == "A" else "8"}, "files": {"/etc/x": "a"}, "model": "sha256:m"}
        measurement = summarise(parse_records(text), sizes, slo=SLO)
        conditions = Fingerprint(facts)
        phases.append(TrialPhase(number=number, letter=letter, measurement=measurement, conditions=conditions))
    return judge_trial(phases, looks(PAIRS), slo=SLO, declared=("slots",)).verdict.value


def seconds(act: Callable[[], object]) -> float:
    """Processor time of this process: what else the machine does is not what is measured."""
    begun = time.process_time()
    act()
    return time.process_time() - begun


def measure(records: int = RECORDS, rounds: int = ROUNDS) -> tuple[float, float, str]:
    """Medians of ours and the rival's seconds, after a round that warms up, and the verdict."""
    each = records // (2 * PAIRS)
    requests = [phase(each, seed) for seed in range(2 * PAIRS)]
    texts, lines = [as_written(one) for one in requests], [json.dumps(row) for one in requests for row in one]
    del requests
    verdict = judge(texts, each)
    ours = [seconds(lambda: judge(texts, each)) for _ in range(rounds)]
    rivals = [seconds(lambda: [json.loads(line) for line in lines]) for _ in range(rounds)]
    return statistics.median(ours), statistics.median(rivals), verdict


def run() -> list[Row]:
    """One floor."""
    ours, rival, verdict = measure()
    note = f"{RECORDS} records of {2 * PAIRS} phases to the verdict {verdict}, processor time, median of {ROUNDS}"
    return [Row("judge", "300,000 raw records judged", f"under {LIMIT:g} s", ours, LIMIT, rival,
                note=f"{note}; rival: json.loads of each record")]  # fmt: skip
