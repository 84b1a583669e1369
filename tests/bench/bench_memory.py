"""The controller's peak memory in an apply, and that of its largest child."""

from __future__ import annotations

import json
import sys

from tests.bench.desk import bench_desk
from tests.bench.table import Row

LIMIT = 200.0  # MB
REQUESTS = 400  # per level and phase, so that the records of a real measurement are in it
# VmHWM is this program's own peak; ru_maxrss would also remember the memory of whoever started it.
PROGRAM = """
import json, re, resource, sys
from changectl.cli.main import main
code = main(sys.argv[2:])
own = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
json.dump([own, child], open(sys.argv[1], "w"))
sys.exit(code)
"""


def run() -> list[Row]:
    """One floor."""
    with bench_desk() as desk:
        result = desk.folder / "memory.json"
        plan = desk.desk.plan("{parameter: {name: parallel, to: 6}}", requests=REQUESTS)
        desk.timed([sys.executable, "-c", PROGRAM, result, "apply", "-i", "hosts.yml", plan])
        own, child = json.loads(result.read_text())
    note = f"one kept change, {REQUESTS} requests a phase; its largest child (Ansible) had {child / 1024:.0f} MB"
    return [Row("memory", "controller's peak in an apply", "under 200 MB", own / 1024, LIMIT, unit="MB", note=note)]
