"""Trials of several pairs on a real host: the saved and the new configuration in turns, each freshly started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.lab.desk import Desk
from tests.lab.harness.hosts import LabHost
from tests.lab.harness.services import LlamaService

pytestmark = [pytest.mark.lab, pytest.mark.timeout(360, func_only=True)]
ServiceMaker = Callable[..., LlamaService]

PLAN = """\
version: 1
service: chat
reason: a test of the lab
effort: standard
outage: 5m
conditions: {{requests: 60}}
steps:
  - change: {{parameter: {{name: parallel, from: {before}, to: {after}}}}}
    expect: {expect}
    accept: {{tpot: <= 250ms, e2e_user: <= 20s, rps_ok: ">= 3 rps", out_tok_s: ">= 30 tok/s"}}
"""


def planned(desk: Desk, before: int, after: int, expect: str) -> str:
    (desk.folder / "trial.yml").write_text(PLAN.format(before=before, after=after, expect=expect))
    return "trial.yml"


def served(h1: LabHost, llama_service: ServiceMaker, slots: int) -> LlamaService:
    return llama_service(h1, flags={"--ctx-size": "4096", "--parallel": str(slots), "--threads": "1"})


def comes_out_of_its_raw_records(desk: Desk, run: str) -> None:
    """Whether the verdict is the same to the last bit, and its page can be drawn."""
    (found,) = desk.run("judge", run, "--json").expect(0).document["verdicts"]
    assert (found["same"], found["differs"]) == (True, None)
    desk.run("show", run, "--html", "run.html").expect(0)
    assert "Distributions" in (desk.folder / "run.html").read_text()


def phases(step: dict[str, Any]) -> str:
    return "".join(phase["phase"] for phase in step["measurements"])


def test_a_gain_is_seen_and_the_change_is_kept(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = served(h1, llama_service, 1)
    desk.lay_out([service])

    told = desk.run("plan", "-i", "hosts.yml", planned(desk, 1, 4, "{ttft_user at normal: -20%}")).expect(0).out
    assert "it can see" in told
    ended = desk.run("apply", "-i", "hosts.yml", "--json", "trial.yml", timeout=330).expect(0)

    step = ended.document["steps"][0]
    assert (step["outcome"], step["verdict"]) == ("kept", "improved")
    assert phases(step).startswith("ABBA")
    assert all(phase["fresh_start"] for phase in step["measurements"])
    assert service.get("/props")["total_slots"] == 4
    assert b"--parallel 4" in h1.read_file(service.unit_file)
    comes_out_of_its_raw_records(desk, ended.document["run"]["run"])


def test_harm_is_seen_in_the_first_pair_and_taken_back(desk: Desk, h1: LabHost, llama_service: ServiceMaker) -> None:
    service = served(h1, llama_service, 4)
    desk.lay_out([service], levels="{normal: 16 streams}")
    before = service.stat(service.unit_file)

    ended = desk.run("apply", "-i", "hosts.yml", "--json", planned(desk, 4, 1, "neutral"), timeout=330).expect(4)

    step = ended.document["steps"][0]
    assert (step["outcome"], step["verdict"]) == ("reverted", "regressed")
    assert phases(step) == "AB"
    assert service.stat(service.unit_file) == before
    assert service.get("/props")["total_slots"] == 4
    comes_out_of_its_raw_records(desk, ended.document["run"]["run"])
