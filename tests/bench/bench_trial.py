"""How long a standard trial takes: up to four pairs of phases, each after a fresh start, on a llama.cpp of the lab.

The change is neutral (one slot more) and its limits are far, so that the trial has to look for harm as long as it may.
"""

from __future__ import annotations

import json

from tests.bench.desk import BenchDesk, bench_desk
from tests.bench.table import Row
from tests.lab.desk import ANY_FIGURES, CONSOLE_SCRIPT

LIMIT = 360.0  # seconds
REQUESTS = 60  # per level and phase: the least that has a P95
PLAN = """\
version: 1
service: chat
reason: how long a standard trial takes
effort: standard
outage: 10m
conditions: {{requests: {requests}}}
steps:
  - change: {{parameter: {{name: parallel, to: {slots}}}}}
    expect: neutral
    accept: {limits}
"""


def trial(desk: BenchDesk, slots: int) -> tuple[float, str]:
    """Wall seconds of the whole command, and what it did. Raises RuntimeError where it was no whole trial."""
    text = PLAN.format(requests=REQUESTS, slots=slots, limits=ANY_FIGURES)
    (desk.desk.folder / "trial.yml").write_text(text)
    command = [CONSOLE_SCRIPT, "apply", "-i", "hosts.yml", "--json", "trial.yml"]
    seconds, out = desk.timed(command, expected=(0, 4, 5), timeout=2 * LIMIT)
    (step,) = json.loads(out)["steps"]
    phases = "".join(phase["phase"] for phase in step["measurements"])
    if len(phases) < 2:
        raise RuntimeError(f"no trial: {step['outcome']}, {step['reason']}: {step['text']}")
    starts = sum(phase["fresh_start"] for phase in step["measurements"])
    return seconds, f"phases {phases}, {starts} starts before phases, {step['verdict']}, {step['outcome']}"


def run() -> list[Row]:
    """One floor."""
    with bench_desk() as desk:
        seconds, story = trial(desk, 5)
    note = f"{story}; {REQUESTS} requests a phase"
    return [Row("trial", "a standard trial on llama.cpp", "under 6 minutes", seconds, LIMIT, note=note)]
