"""What the dead-man costs while nothing happens, and how soon it acts when nobody gives a sign of life any more."""

from __future__ import annotations

import base64
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.bench.table import Row

from changectl.adapters.doors import HostDoors
from changectl.adapters.shipped import playbooks_folder
from changectl.core.lease import DEFAULT, Lease
from changectl.core.ports import Door, HostAddress

BEATS = 200
ROUNDS = 5
SHORT = 2.0  # seconds, of the leases that run out
HERE = HostAddress("here", {"ansible_connection": "local", "ansible_python_interpreter": sys.executable})
TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def own_host() -> Iterator[tuple[Door, Path]]:
    """The real host program on this machine, with a host folder of its own."""
    with tempfile.TemporaryDirectory(prefix="changectl-bench-", dir="/var/tmp") as folder:
        os.environ["CHANGECTL_HOST_DIR"] = folder
        door = HostDoors(playbooks_folder()).open(HERE)
        try:
            yield door, Path(folder)
        finally:
            door.close()
            del os.environ["CHANGECTL_HOST_DIR"]


def ask(door: Door, call: str, args: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One call."""
    return door.call(call, {**args, "state_dir": str(folder)}, timeout=60)


def beats(door: Door, folder: Path) -> tuple[list[float], float]:
    """Seconds of each sign of life, and processor seconds of one on the host."""
    lease = Lease("bench-beats", 1, "ab" * 16, DEFAULT)
    taken = {**lease.as_args(), "seconds": lease.seconds, "owner": "bench", "controller": "bench"}
    ask(door, "lease", taken, folder)
    before, spent = cpu(), []
    for _ in range(BEATS):
        begun = time.perf_counter()
        ask(door, "extend", lease.as_args(), folder)
        spent.append(time.perf_counter() - begun)
    used = cpu() - before
    ask(door, "release", lease.as_args(), folder)
    return spent, used / BEATS


def cpu() -> float:
    """Processor seconds of this process's children that still run: the host program is the only one."""
    total = 0
    for place in Path("/proc").glob("[1-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += int(fields[11]) + int(fields[12])
    return total / TICKS


def late(door: Door, folder: Path, number: int) -> float:
    """Seconds from the deadline of a lease to the moment when its dead-man acts; the saved bytes are back then."""
    scratch = folder / f"scratch-{number}"
    scratch.write_bytes(b"saved\n")
    lease = Lease(f"bench-{number}", 1, f"{number:032x}", SHORT)
    args, new = lease.as_args(), b"new\n"
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in (("old", b"saved\n"), ("new", new))}
    ask(door, "lease", {**args, "seconds": SHORT, "owner": "bench", "controller": "bench"}, folder)
    ask(door, "capture", {**args, "files": [str(scratch)]}, folder)
    ask(door, "stage", {**args, "sha256": digests["new"], "content": base64.b64encode(new).decode()}, folder)
    ask(door, "arm", {**args, "only": [str(scratch)], "manager": None, "service": None, "head": None}, folder)
    ask(door, "write", {**args, "path": str(scratch), "expect": digests["old"], "staged": digests["new"]}, folder)
    ask(door, "extend", args, folder)
    standing = ask(door, "standing", {"run": lease.run}, folder)
    deadline = standing["boot_seconds"] + standing["lease"]["left"]
    time.sleep(SHORT + 2)
    fired = ask(door, "standing", {"run": lease.run}, folder)["fired"]
    assert scratch.read_bytes() == b"saved\n"
    return float(fired["boot_seconds"]) - deadline


def a_ping() -> float:
    """What a playbook's way to say "still here" costs: Ansible's own ping of this machine."""
    begun = time.perf_counter()
    ansible = Path(sys.executable).parent / "ansible"
    subprocess.run([str(ansible), "localhost", "-m", "ping"], capture_output=True, check=True)
    return time.perf_counter() - begun


def run() -> list[Row]:
    """Three floors."""
    with own_host() as (door, folder):
        spent, each = beats(door, folder)
        delays = [late(door, folder, number) for number in range(1, ROUNDS + 1)]
    ping = statistics.median(a_ping() for _ in range(3))
    beat = Lease("", 1, "", DEFAULT).beat
    return [
        Row("leases", "a sign of life, slowest of 200", "under 0.3 s", max(spent), 0.3, ping,
            note=f"median {statistics.median(spent) * 1000:.1f} ms; rival: Ansible's ping"),
        Row("leases", "processor while beating", "1 % of a core", 100 * each / beat, 1.0, unit="%",
            note=f"{each * 1000:.1f} ms every {beat:.0f} s"),
        Row("leases", "the dead-man after its deadline, slowest of 5", "1 s", max(delays), 1.0,
            note=f"leases of {SHORT:.0f} s, nobody in contact"),
    ]  # fmt: skip
