"""The load comes from another host: the engine sees its address, and where it is lost nothing is kept."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import FAR_LIMITS, REQUESTS, Desk, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.inventory import describe_service, write_inventory
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(240, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
MORE_SLOTS = "{parameter: {name: parallel, from: 4, to: 6}}"
#: The load generator runs from a file without a name; our other program has its own in its command line.
LOAD, OURS = "/proc/self/f[d]/", "/proc/self/f[d]/|[c]hangectl"
#: What the host itself writes when somebody comes in.
LOGS = ("/var/log/", "/var/lib/systemd/", "/run/systemd/", "/run/log/", "/run/motd", "/run/utmp")


def served_and_called(desk: Desk, service: LlamaService, caller: LabHost) -> None:
    """The service, asked under the address that other hosts reach, and the host that calls it."""
    text = describe_service(service, more=f"caller: {caller.name}\n")
    text = text.replace(f"http://127.0.0.1:{service.port}", "http://{{ ansible_host }}:" + str(service.port))
    desk.lay_out([service])
    write_inventory(desk.folder, [service.host], others=[caller], services={service.name: text})
    # Long enough to read that a moment in which this machine is busy does not count.
    desk.ask(*(f"{number} " + "once upon a time " * 24 for number in range(12)), tokens=16)
    caller.run(["touch", "/root/mark"])
    time.sleep(0.05)


class Peers:
    """Watches who talks to the engine, by the kernel of its host."""

    def __init__(self, service: LlamaService) -> None:
        self._service, self._over, self.seen = service, threading.Event(), set[str]()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Peers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        port = self._service.port
        while not self._over.wait(0.05):
            lines = self._service.host.run(["ss", "-Htn", "state", "established", f"sport = :{port}"]).stdout
            self.seen |= {line.split()[-1].rpartition(":")[0].strip("[]").removeprefix("::ffff:")
                          for line in lines.splitlines() if line.split()}  # fmt: skip


def nothing_of_ours(caller: LabHost) -> None:
    """No process of ours runs there, and no file was made since the mark."""
    wait_for(lambda: not running(caller, OURS), "our processes end", 40)
    places = ["/", "/tmp", "/run", "/dev/shm"]
    made = caller.run(["find", *places, "-xdev", "-newer", "/root/mark", "-type", "f"], check=False).stdout.splitlines()
    assert [path for path in made if not path.startswith(LOGS)] == []


def running(caller: LabHost, pattern: str) -> str:
    return caller.run(["pgrep", "-fa", pattern], check=False).stdout.strip()


def test_the_engine_sees_the_callers_address_and_the_change_is_kept(
    desk: Desk, h1: LabHost, c1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    served_and_called(desk, service, c1)

    with Peers(service) as peers:
        ended = desk.measured(desk.plan(MORE_SLOTS, more=FAR_LIMITS), 0, tries=5)

    assert c1.address in peers.seen
    step: dict[str, Any] = desk.show(ended.document["run"]["run"])["steps"][0]
    for phase in step["measurements"]:
        assert phase["conditions"]["caller"].startswith("c1 (")
        assert phase["conditions"]["caller_address"] == c1.address
    nothing_of_ours(c1)


def test_where_the_callers_link_is_cut_in_a_phase_nothing_is_kept_and_its_load_ends(
    desk: Desk, h1: LabHost, c1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    served_and_called(desk, service, c1)
    before = service.stat(service.unit_file)
    plan = desk.plan(MORE_SLOTS, more=FAR_LIMITS)
    (desk.folder / plan).write_text((desk.folder / plan).read_text().replace(f"requests: {REQUESTS}", "seconds: 15s"))

    with desk.start("apply", "-i", "hosts.yml", "--json", plan) as process:
        try:
            wait_for(lambda: service.stat(service.unit_file) != before, "the change is written", 120)
            wait_for(lambda: bool(running(c1, LOAD)), "the second phase begins", 60)
            c1.cut_link()
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()
            c1.restore_link()

    assert process.returncode == 5, out + err
    assert '"caller_lost"' in out
    assert service.stat(service.unit_file) == before
    assert service.get("/props")["total_slots"] == 4
    nothing_of_ours(c1)


def test_a_killed_controller_leaves_nothing_on_the_caller(
    desk: Desk, h1: LabHost, c1: LabHost, llama_service: ServiceMaker
) -> None:
    service = llama_service(h1)
    served_and_called(desk, service, c1)

    with desk.start("apply", "-i", "hosts.yml", desk.plan(MORE_SLOTS, requests=2000, more=FAR_LIMITS)) as process:
        wait_for(lambda: bool(running(c1, LOAD)), "the load runs", 90)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate(timeout=20)

    nothing_of_ours(c1)
