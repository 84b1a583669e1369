"""From the verdict `regressed` to the proven old state, by the journal's own times.

On a busy machine the load generator may say that it could not keep up; then the verdict is another one, the way back is
the same, and the round counts.
"""

from __future__ import annotations

import statistics

from tests.bench.desk import Applied, bench_desk
from tests.bench.table import Row

ROUNDS = 5
LIMIT = 4.0  # seconds beyond the service's own stopping and loading
NOT_KEPT = (4, 5)  # exit codes
# No server answers that fast: regressed for certain, whatever the machine does.
IMPOSSIBLE = "    accept: {ttft_user_p50: <= 0.01ms}\n"


def way_back(applied: Applied) -> float:
    """Seconds from the verdict to the proof, without the service's own stopping and loading."""
    proof = [event.body for event in applied.events if event.kind == "verify.outcome"][-1]
    if not proof["verified"]:
        raise RuntimeError(f"the old state was not proven: {proof}")
    return applied.at("verify.outcome") - applied.at("verdict") - applied.restart


def run(rounds: int = ROUNDS) -> list[Row]:
    """One floor; the first round warms up."""
    with bench_desk() as desk:
        figures = [way_back(desk.judged(6, expected=NOT_KEPT, more=IMPOSSIBLE)) for _ in range(rounds + 1)][1:]
    note = f"median of {rounds} reverts (slowest {max(figures):.3f} s), without the service's own stopping and loading"
    floor = "stop and load plus at most 4 s"
    return [
        Row("revert", "from regressed to the proven old state", floor, statistics.median(figures), LIMIT, note=note)
    ]
