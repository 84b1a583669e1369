"""A calibration on a real host: nothing is changed there, and the next plan knows its noise."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.lab.desk import Desk, Ended
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(480, func_only=True)]

#: Every request waits so long before the engine has it that a busy moment of this machine is no large part of it.
STEADY = {"LAB_FAULT_TAIL": "1@300"}
COMMAND = ("calibrate", "chat", "-i", "hosts.yml", "--outage", "5m", "--json")
PLAN = """\
version: 1
service: chat
reason: a test of the lab
outage: 5m
steps:
  - change: {parameter: {name: parallel, from: 4, to: 5}}
    expect: neutral
"""


def calibrated(desk: Desk, tries: int = 4) -> Ended:
    """Calibrate; where this machine was too busy meanwhile once more, which measures what is missing."""
    ended = desk.run(*COMMAND, timeout=400)
    for _ in range(tries):
        busy = "did not keep up" in ended.out or "unlike the others" in ended.out
        if ended.code == 0 and not busy:
            break
        assert ended.code == 0 or busy, ended.out
        more = desk.run(*COMMAND, timeout=400)
        if more.document["steps"][0]["reason"] == "nothing_to_do":
            break
        ended = more
    return ended.expect(0)


def test_a_calibrated_host_is_known_to_the_next_plan_and_was_not_changed(
    desk: Desk, h1: LabHost, llama_service: Callable[..., LlamaService]
) -> None:
    flags = {"--ctx-size": "4096", "--parallel": "4", "--threads": "1"}
    service = llama_service(h1, flags=flags, environment=STEADY)
    desk.lay_out([service], levels="{normal: 4 streams}, requests: 24")
    (desk.folder / "next.yml").write_text(PLAN)
    before = h1.run(["stat", "-c", "%i %Y %Z %s", service.unit_file]).stdout
    sight = desk.preview("next.yml").expect(0).document["steps"][0]["can_see"]
    assert all("uncalibrated" in sentence for sentence in sight), sight

    assert "--outage" in desk.run("calibrate", "chat", "-i", "hosts.yml").expect(2).err
    ended = calibrated(desk)

    (step,) = ended.document["steps"]
    assert (step["outcome"], step["reason"], step["instances"]) == (
        "kept",
        "calibrated",
        {service.host.name: "reverted"},
    )
    assert {phase["phase"] for phase in step["measurements"]} == {"A"}
    assert all(phase["fresh_start"] for phase in step["measurements"])
    assert h1.run(["stat", "-c", "%i %Y %Z %s", service.unit_file]).stdout == before
    assert service.get("/props")["total_slots"] == 4
    sight = desk.preview("next.yml").document["steps"][0]["can_see"]  # whether that is enough depends on this machine
    assert sight
    assert not any("uncalibrated" in sentence for sentence in sight), sight
    told = desk.run("show", ended.document["run"]["run"]).expect(0).out
    assert "the noise of its hosts is known" in told

    again = desk.run("calibrate", "chat", "-i", "hosts.yml", "--outage", "5m", timeout=60).expect(0)
    assert "nothing had to be done" in again.out
