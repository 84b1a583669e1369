"""What looking at a host and a service costs there, at one look a second."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.bench.table import Row

from changectl.adapters.doors import host_module

PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"
LIMIT = 1.0  # % of a core
LOOKS = 30
INTERVAL = 0.1  # seconds; what one look costs does not depend on it
SERVICE = """
import sys, threading, time
for _ in range(int(sys.argv[1]) - 1):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
time.sleep(60)
"""


def percent_of_a_core(threads: int) -> float:
    """Processor time of the sampler at one look a second, for a service with so many threads."""
    dispatch = host_module(PLAYBOOKS, "calls").dispatch
    with TemporaryDirectory() as folder, subprocess.Popen([sys.executable, "-c", SERVICE, str(threads)]) as service:
        try:
            pid = Path(folder) / "pid"
            pid.write_text(str(service.pid))
            manager = {"command": {"start": ["true"], "pid": {"file": str(pid)}}}
            time.sleep(1)
            dispatch("sample", {"action": "start", "interval": INTERVAL, "seconds": 60, "manager": manager})
            time.sleep(LOOKS * INTERVAL)
            answer = dispatch("sample", {"action": "collect"})
        finally:
            service.kill()
    return 100 * float(answer["cpu_seconds"]) / int(answer["count"])


def run() -> list[Row]:
    """One floor for each size."""
    return [
        Row("sampler", f"one look a second, {threads} threads", "under 1 % of a core", percent_of_a_core(threads),
            LIMIT, unit="% of a core", note=f"{LOOKS} looks")
        for threads in (16, 1000)
    ]  # fmt: skip
