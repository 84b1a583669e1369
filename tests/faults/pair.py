"""Two instances of one service on one host, over the local connection: the controller dies, the host decides."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.faults import strikes
from tests.faults.bench import LEASE, LOAD, LocalBench
from tests.faults.local_cell import ACTS_WITHIN, PATIENCE, RUN_TIMEOUT, STOP
from tests.faults.told import read_journal

_INSTANCE = '  - {{host: here, endpoint: "http://127.0.0.1:{port}", vars: {{place: "{place}", port: "{port}"}}}}\n'


def pair(order: Mapping[str, Any]) -> dict[str, Any]:
    """Apply the plan that is kept, with the fault; what each instance runs before and after `recover`."""
    folder = Path(order["folder"])
    benches = [LocalBench(folder / name).lay_out() for name in ("one", "two")]
    desk = benches[0]
    _of_both(desk, benches)
    for bench in benches:
        bench.start()
    trace, orders = folder / "trace", folder / "orders.json"
    orders.write_text(json.dumps({"trace": str(trace), "faults": [{**order["point"], "do": "KILL"}]}))
    done = _run(desk, orders)
    time.sleep(LEASE + ACTS_WITHIN)
    by_the_host = _settled(benches)
    recovered = desk.run("recover", "-i", "hosts.yml", "--json")
    told = read_journal(desk.database)
    found = {"struck": bool(strikes.lines(trace)), "exit": done, "by_the_host": by_the_host,
             "recover": recovered.returncode, "slots": _slots(benches), "outcome": told.outcome,
             "ended": told.ended}  # fmt: skip
    for bench in benches:
        strikes.end_engine(bench)
    return found


def _of_both(desk: LocalBench, benches: list[LocalBench]) -> None:
    """One service file for both engines; what differs between them are their folders and ports."""
    file = desk.project / "services" / "chat.yml"
    text = file.read_text()
    head, _, rest = text.partition("instances:\n")
    _, _, rest = rest.partition("\n")
    rest = rest.replace(str(desk.service), "{{ place }}")
    lines = "".join(_INSTANCE.format(place=bench.service, port=bench.port) for bench in benches)
    file.write_text(f"{head}instances:\n{lines}{rest}")


def _run(desk: LocalBench, orders: Path) -> int:
    command = desk.command(*desk.apply_words("kept"), faults=orders)
    with orders.with_name("out").open("wb") as out, orders.with_name("err").open("wb") as err:
        return subprocess.run(
            command, cwd=desk.project, env=dict(desk.environment()), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            timeout=RUN_TIMEOUT, check=False,
        ).returncode  # fmt: skip


def _settled(benches: list[LocalBench]) -> list[str]:
    """What each runs once both answer; as it stands when that takes too long."""
    deadline = time.monotonic() + STOP + LOAD + PATIENCE
    while time.monotonic() < deadline and not all(bench.reach().look()["answer"]["ok"] for bench in benches):
        time.sleep(0.2)
    return _slots(benches)


def _slots(benches: list[LocalBench]) -> list[str]:
    """Slots as the running process and the file say them: one number where both agree."""
    told = []
    for bench in benches:
        seen = bench.reach().look()
        running = [one["argv"][one["argv"].index("--parallel") + 1] for one in seen["processes"]]
        written = bench.settings.read_text().partition("--parallel ")[2].split()[0]
        good = running == [written] and seen["answer"]["ok"]
        told.append(written if good else f"file {written}, processes {running}, {seen['answer']['text']}")
    return told
