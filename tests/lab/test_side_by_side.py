"""Two llama.cpp instances of one service on one host, each with a port and a unit of its own."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest
from tests.lab.desk import ANY_FIGURES, Desk, wait_for
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(480, func_only=True)]
ServiceMaker = Callable[..., LlamaService]
Pair = list[LlamaService]

SERVICE = """version: 1
service: pair
class: interactive
instances:
  - {host: h1, endpoint: "http://127.0.0.1:{{ port }}", vars: {port: "8001", stem: pair}}
  - {host: h1, endpoint: "http://127.0.0.1:{{ port }}", vars: {port: "8002", stem: pair-two}}
engine: llamacpp
manager: {systemd: {unit: "llama-{{ stem }}.service"}}
config:
  - {unit: "llama-{{ stem }}.service", format: flags}
  - {file: "/etc/llama/{{ stem }}.env", format: env}
model: {path: "/srv/models/{{ stem }}.gguf", name: "{{ stem }}"}
conditions: {workload: workloads/pair.jsonl, levels: {normal: 1 stream}}
limits: {load_on_live: true}
lease: 15s
"""
#: A stand-in for a limit that the second instance alone runs into: while this file is there, two slots do not start.
LIMIT = "/srv/llm/no-two-slots"
REFUSES = (
    f"ExecStartPre=/bin/sh -c \"! test -e {LIMIT} || ! grep -q 'parallel [2]' "
    '/etc/systemd/system/llama-pair-two.service"'
)
ARMED = ["sh", "-c", "cat /var/lib/changectl/runs/*/2/armed.json"]
CHANGE = "{parameter: {name: parallel, from: 4, to: 2}}"


@pytest.fixture
def pair(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> Pair:
    first = llama_service(h1, name="pair", port=8001)
    second = llama_service(h1, name="pair-two", port=8002, unit_lines=(REFUSES,))
    desk.lay_out([first], texts={"pair": SERVICE})
    return [first, second]


def slots(pair: Pair) -> list[int]:
    return [service.get("/props")["total_slots"] for service in pair]


def runs_with(service: LlamaService, number: int) -> bool:
    """Whether there is a process with so many slots; now and then, while it is started anew, there is none."""
    script = f"tr '\\0' ' ' <\"/proc/$(systemctl show --value --property=MainPID {service.unit})/cmdline\""
    return f"--parallel {number} " in service.host.run(["sh", "-c", script], check=False).stdout


def plan(desk: Desk) -> str:
    return desk.plan(CHANGE, service="pair", more=f"    accept: {ANY_FIGURES}\n")


def left(host: LabHost) -> list[str]:
    """What of a run would still act there: its lease, sleepers, and units for the next boot."""
    script = (
        "ls /var/lib/changectl/lease.json /etc/systemd/system/changectl-boot* 2>/dev/null; "
        "systemctl list-units --all --plain --no-legend 'changectl-deadman-*'; true"
    )
    return host.run(["sh", "-c", script]).stdout.splitlines()


def test_a_change_is_kept_on_both_and_one_that_breaks_the_second_alone_goes_back_there(
    desk: Desk, h1: LabHost, pair: Pair
) -> None:
    shown = desk.preview(plan(desk)).expect(0).document
    assert [one["instance"] for one in shown["steps"][0]["instances"]] == ["h1:8001", "h1:8002"]

    kept = desk.measured(plan(desk), 0, timeout=300).document
    assert kept["steps"][0]["instances"] == {"h1:8001": "kept", "h1:8002": "kept"}
    assert slots(pair) == [2, 2]
    desk.revert(kept["run"]["run"]).expect(0)
    assert slots(pair) == [4, 4]

    h1.write_file(LIMIT, "", mode="0644")
    before = pair[1].stat(pair[1].unit_file)
    ended = desk.measured(plan(desk), 4, timeout=300).document
    h1.run(["rm", "--", LIMIT])
    (step,) = ended["steps"]
    assert (step["outcome"], step["reason"]) == ("kept_partly", "did_not_start")
    assert step["instances"] == {"h1:8001": "kept", "h1:8002": "reverted"}
    assert slots(pair) == [2, 4]
    assert pair[1].stat(pair[1].unit_file) == before
    assert "2 on h1:8001; 4 on h1:8002" in desk.run("status").expect(0).out
    assert left(h1) == []


def test_when_the_controller_dies_the_host_brings_back_the_unjudged_one_and_leaves_the_kept_alone(
    desk: Desk, h1: LabHost, pair: Pair
) -> None:
    with desk.start("apply", "-i", "hosts.yml", plan(desk)) as process:
        wait_for(lambda: h1.run(ARMED, check=False).returncode == 0, "the second one is armed", 120)
        wait_for(lambda: runs_with(pair[1], 2), "the second one runs on the change", 60)
        assert "/etc/systemd/system/changectl-boot.2.service" in left(h1)
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: runs_with(pair[1], 4), "its dead-man brought it back", 60)
    pair[1].wait_ready()
    assert slots(pair) == [2, 4]

    settled = json.loads(desk.run("recover", "-i", "hosts.yml", "--json").expect(0).out)
    assert "h1:8001" in json.dumps(settled)
    (step,) = desk.show(_run(desk))["steps"]
    assert (step["outcome"], step["instances"]) == ("kept_partly", {"h1:8001": "kept", "h1:8002": "reverted"})
    assert left(h1) == []


def _run(desk: Desk) -> str:
    (run,) = desk.run("history", "--json").expect(0).document["runs"]
    return str(run["run"])
